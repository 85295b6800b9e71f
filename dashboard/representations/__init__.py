"""The parts of the page `/representations`."""
