"""The parts of the page `/deniability`."""
