"""Damaged inputs of every kind, and whether each is answered in words."""
