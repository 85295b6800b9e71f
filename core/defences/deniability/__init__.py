"""Plausible deniability: how often a token comes back, and what it turns into, at every η."""
