"""The release of noisy vectors in earlier versions, kept to test the attack on it."""

from __future__ import annotations

import numpy as np

from leakscope.core.defences.metric_dp.noise import draw_noise


def release_in_float32(vectors: np.ndarray, eta: float, rng: np.random.Generator) -> np.ndarray:
    """Return the float32 sum of vectors and noise, which keeps the vectors' rounding grid."""
    return np.asarray(vectors + draw_noise(*vectors.shape, eta, rng=rng), np.float32)
