"""Noisy input of users, and the networks that are trained to read it."""
