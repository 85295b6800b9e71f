"""The parts of the page `/training`."""
