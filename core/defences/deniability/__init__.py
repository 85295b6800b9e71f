"""Plausible deniability: how often a token stays unchanged, and what replaces it, at every η."""
