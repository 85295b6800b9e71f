"""Exact and fast nearest-token search for noisy vectors."""
