"""Spearman's correlation of two rankings of the same pairs, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from core.results import NO_INTERVAL, Interval
from core.units import resampled_rows, unit_rows

__all__ = ["spearman_correlation", "spearman_difference"]


def spearman_correlation(
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> tuple[float, Interval]:
    """Return Spearman's correlation in [-1, 1] and its 95 % bootstrap interval over the pairs.

    Parameters
    ----------
    one, two : ndarray of float64, shape (n,)
        A constant side has the correlation 0.
    groups : sequence, optional
        The unit of each pair: units are drawn whole.
    seed : int
        Of the 1,000 resamples.
    """

    def correlations(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return _correlations(one[rows], two[rows])

    return _with_interval(correlations, len(one), groups, seed)


def spearman_difference(
    one: NDArray[np.float64],
    other: NDArray[np.float64],
    truth: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> tuple[float, Interval]:
    """Return how much better `one` follows the truth than `other` does, on the same n pairs.

    The difference of the two correlations, and its 95 % interval by a bootstrap that draws the
    same pairs for both, 1,000 times.
    """

    def correlations(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return _correlations(one[rows], truth[rows]) - _correlations(other[rows], truth[rows])

    return _with_interval(correlations, len(truth), groups, seed)


def _with_interval(
    correlations: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    n: int,
    groups: Sequence[Hashable] | None,
    seed: int,
) -> tuple[float, Interval]:
    """Return what n pairs give, with its interval over 1,000 draws of their units."""
    value = float(correlations(np.arange(n)[None])[0])
    if len(set(unit_rows(groups, n))) < 2:
        return value, NO_INTERVAL
    draws = list(resampled_rows(groups, n, 1000, np.random.default_rng([seed, 1])))
    if groups is None:
        found = correlations(np.array(draws))
    else:  # draws of units are of different lengths
        found = np.array([correlations(rows[None])[0] for rows in draws])
    low, high = np.percentile(found, [2.5, 97.5])
    return value, Interval(min(float(low), value), max(float(high), value))


def _correlations(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation of each row: Pearson's of the ranks."""
    from scipy.stats import rankdata

    ranks = [rankdata(side, axis=1) for side in (one, two)]
    a, b = (side - side.mean(1, keepdims=True) for side in ranks)
    scale = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    correlations: NDArray[np.float64] = (a * b).sum(1) / np.where(scale, scale, 1.0)
    return correlations
