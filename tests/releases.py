"""How earlier versions released noisy vectors: kept so that the attack on it can be tested."""

from __future__ import annotations

import numpy as np

from core.defences.metric_dp.noise import draw_noise


def release_in_float32(vectors: np.ndarray, eta: float, rng: np.random.Generator) -> np.ndarray:
    """Return a float32 sum of vectors and noise, which keeps the rounding grid of the vectors."""
    return np.asarray(vectors + draw_noise(*vectors.shape, eta, rng=rng), np.float32)
