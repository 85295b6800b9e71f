"""Continuous relaxation: optimise a soft text by gradients through the encoder or a lower layer."""
