"""Attacks, a folder for each family: `inversion`, `attributes` and `membership` inference."""
