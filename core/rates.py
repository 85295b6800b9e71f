"""A share of trials with its interval, in per cent; trials of one unit depend on each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.intervals import percent_interval, wilson_interval
from core.results import NO_INTERVAL, Score
from core.units import TextUnit, effective_size

__all__ = ["mean_rate", "rate_by_document", "rate_of"]


def rate_of(found: int, n: int) -> Score:
    """Return how often something happened in n independent trials, in [0, 100].

    With Wilson's interval. With no trial, value and interval are NaN and [0, 100].
    """
    return Score(100 * found / n if n else float("nan"), wilson_interval(found, n), n)


def rate_by_document(
    hits: NDArray[np.bool_], documents: Sequence[Hashable] | None, *, seed: int = 0
) -> Score:
    """Return how often something happened, in [0, 100]; n counts trials.

    Parameters
    ----------
    hits : ndarray of bool, shape (n,)
    documents : sequence of n, optional
        The unit of each trial, such as `core.units.units_of` returns. Where units hold several
        trials, whole units are resampled; else the interval is Wilson's. Copies of a text count
        as `core.units.effective_size` says in Wilson's interval.
    """
    if documents is None or len(set(documents)) == len(documents):
        return rate_of(int(hits.sum()), len(hits))
    if all(isinstance(unit, TextUnit) for unit in documents):
        share, n = float(hits.mean()), effective_size(documents)
        return Score(100 * share, wilson_interval(share * n, n), len(hits))
    return mean_rate(hits.astype(np.float64), documents=documents, seed=seed)


def mean_rate(
    shares: NDArray[np.float64],
    *,
    documents: Sequence[Hashable] | None = None,
    n_trials: int | None = None,
    seed: int = 0,
) -> Score:
    """Return the mean of shares in [0, 1] that lie within a sample each, such as a sentence.

    Trials within a sample depend on each other, so the samples are resampled (bootstrap), and by
    whole documents where these are given; n counts samples. NaN shares, of samples without a
    trial, are left out. Where all shares are 0, or all are 1, resampling knows no doubt: Wilson's
    interval for as many trials as there are documents, or samples, stands in. One document with
    several samples has no interval.
    """
    is_kept = ~np.isnan(shares)
    kept = 100 * shares[is_kept]
    if not len(kept):
        return rate_of(0, 0)
    units = (
        None
        if documents is None
        else [one for one, is_there in zip(documents, is_kept, strict=True) if is_there]
    )
    n_units = len(kept) if units is None else len(set(units))
    if n_units > 1 and kept.min() == kept.max() and kept[0] in (0, 100):
        alike = rate_of(n_units if kept[0] else 0, n_units)
        return replace(alike, n=len(kept), n_trials=n_trials)
    interval = NO_INTERVAL if n_units == 1 else percent_interval(kept, groups=units, seed=seed)
    return Score(float(kept.mean()), interval, len(kept), n_trials=n_trials)
