"""Classifiers to attack, and their shadow models: several of one kind are trained at once.

Reading order: training_batch, heads, networks (training in parallel), lstm with
tokens, transformer.
"""
