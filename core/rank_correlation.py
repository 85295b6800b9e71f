"""Spearman's correlation of two rankings of the same pairs, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.results import Interval

__all__ = ["spearman_correlation", "spearman_difference"]


def spearman_correlation(
    one: NDArray[np.float64], two: NDArray[np.float64], *, seed: int = 0
) -> tuple[float, Interval]:
    """Return Spearman's correlation in [-1, 1] and its 95 % bootstrap interval over the pairs.

    Parameters
    ----------
    one, two : ndarray of float64, shape (n,)
        A constant side has the correlation 0.
    seed : int
        Of the 1,000 resamples.
    """
    drawn = _resamples(len(one), seed)
    low, high = np.percentile(_correlations(one[drawn], two[drawn]), [2.5, 97.5])
    value = _correlations(one[None], two[None])[0]
    return float(value), Interval(float(low), float(high))


def spearman_difference(
    one: NDArray[np.float64],
    other: NDArray[np.float64],
    truth: NDArray[np.float64],
    *,
    seed: int = 0,
) -> tuple[float, Interval]:
    """Return how much better `one` follows the truth than `other` does, on the same n pairs.

    The difference of the two correlations, and its 95 % interval by a bootstrap that draws the
    same pairs for both, 1,000 times.
    """
    drawn = _resamples(len(truth), seed)

    def correlations(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return _correlations(one[rows], truth[rows]) - _correlations(other[rows], truth[rows])

    low, high = np.percentile(correlations(drawn), [2.5, 97.5])
    value = correlations(np.arange(len(truth))[None])[0]
    return float(value), Interval(float(low), float(high))


def _resamples(n: int, seed: int) -> NDArray[np.int64]:
    """Return which of n pairs each of 1,000 bootstraps draws."""
    return np.random.default_rng([seed, 1]).integers(0, n, (1000, n))


def _correlations(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation of each row: Pearson's of the ranks."""
    from scipy.stats import rankdata

    ranks = [rankdata(side, axis=1) for side in (one, two)]
    a, b = (side - side.mean(1, keepdims=True) for side in ranks)
    scale = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    correlations: NDArray[np.float64] = (a * b).sum(1) / np.where(scale, scale, 1.0)
    return correlations
