"""Classifiers to attack, and their shadows: several of one kind are trained at once.

Reading order: lesson (what each learns from), linear with heads, networks (how networks are
trained side by side), lstm with tokens, transformer.
"""
