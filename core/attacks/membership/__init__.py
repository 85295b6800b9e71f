"""Membership inference: which texts a model was trained on."""
