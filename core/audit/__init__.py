"""Audit of a user's own vectors: where they come from, whose they are, and what they leak."""
