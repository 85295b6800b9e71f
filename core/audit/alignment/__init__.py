"""Alignment of an unknown encoder's vectors to a known encoder's space, with and without pairs."""
