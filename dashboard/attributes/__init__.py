"""The parts of the page `/attributes`."""
