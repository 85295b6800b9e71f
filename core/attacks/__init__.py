"""Attacks, a folder a family: `core.attacks.inversion` reads words out of vectors."""
