"""Defences that are trained: models that leak less, or that work on noisy inputs."""
