"""Inversion: from a vector back to the words of the text, one attack a file."""
