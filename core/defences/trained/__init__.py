"""Defences that are trained: networks that learn to work with what the noise leaves."""
