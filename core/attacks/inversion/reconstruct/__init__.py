"""Reconstruction: from a vector to the sentence, its words back in their order."""
