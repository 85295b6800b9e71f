"""A share of trials with its interval, in per cent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.metrics import bootstrap_interval, wilson_interval
from core.results import Score

__all__ = ["mean_rate", "rate_of"]


def rate_of(found: int, n: int) -> Score:
    """Return how often something happened in n independent trials, in [0, 100].

    With Wilson's interval. With no trial, value and interval are NaN and [0, 100].
    """
    return Score(100 * found / n if n else float("nan"), wilson_interval(found, n), n)


def mean_rate(shares: NDArray[np.float64], *, n_trials: int | None = None, seed: int = 0) -> Score:
    """Return the mean of shares in [0, 1] that lie within a sample each, such as a sentence.

    Trials within a sample depend on each other, so the samples are resampled (bootstrap); n
    counts samples. NaN shares, of samples without a trial, are left out. Where all shares are 0, or
    all are 1, resampling knows no doubt: Wilson's interval for n trials stands in.
    """
    kept = 100 * shares[~np.isnan(shares)]
    if not len(kept):
        return rate_of(0, 0)
    if kept.min() == kept.max() and kept[0] in (0, 100):
        return replace(rate_of(int(kept.sum()) // 100, len(kept)), n_trials=n_trials)
    interval = bootstrap_interval(kept, seed=seed)
    return Score(float(kept.mean()), interval, len(kept), n_trials=n_trials)
