"""The parts of the page `/projection`."""
