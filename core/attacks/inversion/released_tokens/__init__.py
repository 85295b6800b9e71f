"""Attacks on privatised tokens that know the mechanism that released them."""
