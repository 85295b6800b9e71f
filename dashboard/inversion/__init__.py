"""The parts of the page `/inversion`."""
