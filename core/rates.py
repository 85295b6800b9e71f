"""A share of trials with its interval, in per cent; trials of one document depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.intervals import percent_interval, wilson_interval
from core.results import Score

__all__ = ["mean_rate", "rate_by_document", "rate_of"]


def rate_of(found: int, n: int) -> Score:
    """Return how often something happened in n independent trials, in [0, 100].

    With Wilson's interval. With no trial, value and interval are NaN and [0, 100].
    """
    return Score(100 * found / n if n else float("nan"), wilson_interval(found, n), n)


def rate_by_document(
    hits: NDArray[np.bool_], documents: Sequence[str] | None, *, seed: int = 0
) -> Score:
    """Return how often something happened, in [0, 100]; n counts trials.

    Parameters
    ----------
    hits : ndarray of bool, shape (n,)
    documents : sequence of n str, optional
        The document of each trial. Where one holds several, whole documents are resampled; else
        the interval is Wilson's.
    """
    if documents is None or len(set(documents)) == len(documents):
        return rate_of(int(hits.sum()), len(hits))
    return mean_rate(hits.astype(np.float64), documents=documents, seed=seed)


def mean_rate(
    shares: NDArray[np.float64],
    *,
    documents: Sequence[str] | None = None,
    n_trials: int | None = None,
    seed: int = 0,
) -> Score:
    """Return the mean of shares in [0, 1] that lie within a sample each, such as a sentence.

    Trials within a sample depend on each other, so the samples are resampled (bootstrap), and by
    whole documents where these are given; n counts samples. NaN shares, of samples without a
    trial, are left out. Where all shares are 0, or all are 1, resampling knows no doubt: Wilson's
    interval for as many trials as there are documents, or samples, stands in. Of one document
    with several samples the mean may be anything.
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
    if kept.min() == kept.max() and kept[0] in (0, 100):
        n = len(kept) if units is None else len(set(units))
        alike = rate_of(n if kept[0] else 0, n)
        return replace(alike, n=len(kept), n_trials=n_trials)
    interval = percent_interval(kept, groups=units, seed=seed)
    return Score(float(kept.mean()), interval, len(kept), n_trials=n_trials)
