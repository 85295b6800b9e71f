"""The parts of the page `/tradeoff`."""
