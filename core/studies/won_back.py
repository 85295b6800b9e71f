"""How much of what noise costs is won back: a share, with its doubt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.results import Interval, Score

__all__ = ["won_back"]


def won_back(
    without: NDArray[np.bool_],
    constrained: NDArray[np.bool_],
    adapted: NDArray[np.bool_],
    *,
    seed: int = 0,
    n_resamples: int = 2000,
) -> Score:
    """Return 100 (adapted − constrained) / (without − constrained), accuracies on the same texts.

    The interval is from a bootstrap over the texts, all three drawn together. Where some of it
    finds nothing lost there is none, and where nothing is lost no value either.

    Parameters
    ----------
    without, constrained, adapted : bool arrays (n,)
        What is right without noise, under noise, and under noise after pretraining.

    Raises
    ------
    InvalidInputError
        The three are of different texts.

    Examples
    --------
    >>> right = np.arange(100)
    >>> won_back(right < 90, right < 50, right < 70).said(0)
    '50 [35, 65]'
    """
    if not len(without) == len(constrained) == len(adapted):
        raise InvalidInputError("Outcomes on different texts cannot be compared.")
    gain, lost = (np.subtract(one, constrained, dtype=np.float64) for one in (adapted, without))
    n = len(gain)
    if not n or lost.mean() <= 0:
        return Score(float("nan"), n=n, chance=0.0)
    rows = np.random.default_rng([seed, 31]).integers(n, size=(n_resamples, n))
    costs = lost[rows].mean(1)
    value = 100 * float(gain.mean() / lost.mean())
    if n < 2 or costs.min() <= 0:
        return Score(value, n=n, chance=0.0)
    low, high = np.quantile(100 * gain[rows].mean(1) / costs, [0.025, 0.975])
    return Score(value, Interval(min(float(low), value), max(float(high), value)), n, 0.0)
