"""Spearman's rank correlation with a bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from leakscope.core.results import NO_INTERVAL, Interval
from leakscope.core.units import cluster_ids, resampled_rows


def spearman_correlation(
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> tuple[float, Interval]:
    """Return Spearman's correlation of two value arrays with its 95 % bootstrap interval.

    Parameters
    ----------
    one, two : ndarray of float64, shape (n,)
        A constant side has the correlation 0.
    groups : sequence, optional
        The unit of each pair: units are drawn whole.
    seed : int
        Seed of the 1,000 resamples.
    """

    def correlations(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the correlation of each resample, given as row numbers."""
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
    """Return the correlation of `one` with `truth` minus that of `other`, with its 95 % interval.

    The difference of the two correlations, and its 95 % interval by a bootstrap that draws the
    same pairs for both, 1,000 times.
    """

    def correlations(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the difference of correlations of each resample, given as row numbers."""
        return _correlations(one[rows], truth[rows]) - _correlations(other[rows], truth[rows])

    return _with_interval(correlations, len(truth), groups, seed)


def _with_interval(
    correlations: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    n: int,
    groups: Sequence[Hashable] | None,
    seed: int,
) -> tuple[float, Interval]:
    """Bootstrap a correlation function over n pairs; return its value and 95 % interval."""
    value = float(correlations(np.arange(n)[None])[0])
    if len(set(cluster_ids(groups, n))) < 2:
        return value, NO_INTERVAL
    draws = list(resampled_rows(groups, n, 1000, np.random.default_rng([seed, 1])))
    if groups is None:
        found = correlations(np.array(draws))
    else:  # draws of units are of different lengths
        found = np.array([correlations(rows[None])[0] for rows in draws])
    low, high = np.percentile(found, [2.5, 97.5])
    return value, Interval(min(float(low), value), max(float(high), value))


def _correlations(one: NDArray[np.float64], two: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Spearman's correlation of row i of `one` with row i of `two`, for each i."""
    from scipy.stats import rankdata

    ranks = [rankdata(side, axis=1) for side in (one, two)]
    a, b = (side - side.mean(1, keepdims=True) for side in ranks)
    scale = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    correlations: NDArray[np.float64] = (a * b).sum(1) / np.where(scale, scale, 1.0)
    return correlations
