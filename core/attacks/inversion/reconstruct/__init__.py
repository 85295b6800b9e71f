"""Reconstruction: recover the sentence of a vector, its words in order."""
