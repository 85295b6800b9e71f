"""The parts of the page `/story`, and the button that pins a view to it."""
