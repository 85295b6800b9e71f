"""Attacks, a folder a family: `inversion` reads words, `membership` asks who was trained on."""
