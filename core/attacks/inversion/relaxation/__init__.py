"""Relaxation: gradients through the encoder to a soft text, at its output or at a lower layer."""
