"""Defences that are trained."""
