"""Findings: one measured result each, as a sentence, a figure and a table."""
