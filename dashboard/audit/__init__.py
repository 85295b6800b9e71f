"""The audit page: the encoder of a visitor's own vectors, and what leaks from them."""
