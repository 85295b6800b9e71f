"""The parts of the page `/memorisation`."""
