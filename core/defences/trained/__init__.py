"""Defences that are trained: models made so that they tell less, or work with what noise leaves."""
