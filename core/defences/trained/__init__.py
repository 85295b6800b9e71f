"""Defences that are trained: what is learned is made so that it tells less."""
