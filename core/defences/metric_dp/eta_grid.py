"""The values of η that are measured and offered in the interface."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NAMED_ETAS = (30.0, 45.0, 60.0, 75.0, 90.0, 105.0, 120.0)
"""η at which MiniLM's tokens come back as often as BERT's at the η of Qu et al. (2021): the two
scales differ with the dimension and the lengths of the token vectors."""


def eta_grid(dimension: int, n: int = 41) -> NDArray[np.float64]:
    """Return an ascending grid of η from 15 to 200 at n = 384, scaled with the dimension.

    `NAMED_ETAS` and the η of Qu et al. (2021, Table 3) are among it.
    """
    scale = dimension / 384
    plain = np.round(np.geomspace(15, 200, n), 1)
    return np.unique(np.concatenate([plain, NAMED_ETAS, (50, 100, 125, 150, 175)])) * scale


@lru_cache(maxsize=8)
def eta_steps(dimension: int) -> tuple[float, ...]:
    """Return the slider's ascending values of η: 15 to 200 at n = 384, scaled with n."""
    low, high = (float(eta_grid(dimension)[i]) for i in (0, -1))
    steps = {_round_eta(float(s), low) for s in np.geomspace(low, high, 131)}
    steps |= {float(s) for s in range(30, 200, 5)}
    return tuple(sorted(s for s in steps if low <= s <= high))


def _round_eta(eta: float, low: float) -> float:
    """Round η to halves or wholes, or to three digits on a small scale."""
    if low < 7:
        return float(f"{eta:.3g}")
    return round(2 * eta) / 2 if eta < 30 else float(round(eta))
