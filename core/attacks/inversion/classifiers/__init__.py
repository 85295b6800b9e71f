"""Classifiers of words: one yes-or-no answer a word, from a random or from a probed start."""
