"""The parts of the page `/names`."""
