"""The parts of the page `/membership`."""
