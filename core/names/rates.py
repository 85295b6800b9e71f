"""A share of trials with its Wilson interval, in per cent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.metrics import bootstrap_interval, wilson_interval
from core.results import Interval

__all__ = ["Rate", "mean_rate"]


@dataclass(frozen=True)
class Rate:
    """How often something happened in n trials, in [0, 100], with a 95 % interval.

    With no trial, value and interval are NaN and [0, 100]. `n` is what the interval is of:
    independent trials, or samples of several trials each, whose number is then `n_trials`.
    """

    value: float
    ci95: Interval
    n: int
    n_trials: int | None = None

    @classmethod
    def of(cls, found: int, n: int) -> Rate:
        """Return the share of independent trials, with Wilson's interval."""
        return cls(100 * found / n if n else float("nan"), wilson_interval(found, n), n)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form; a value of NaN becomes None."""
        value = None if np.isnan(self.value) else self.value
        return {"value": value, "ci95": [self.ci95.low, self.ci95.high], "n": self.n}


def mean_rate(shares: NDArray[np.float64], *, n_trials: int | None = None, seed: int = 0) -> Rate:
    """Return the mean of shares in [0, 1] that lie within a sample each, such as a sentence.

    Trials within a sample depend on each other, so the samples are resampled (bootstrap); n
    counts samples. NaN shares, of samples without a trial, are left out. Where all shares are 0, or
    all are 1, resampling knows no doubt: Wilson's interval for n trials stands in.
    """
    kept = 100 * shares[~np.isnan(shares)]
    if not len(kept):
        return Rate.of(0, 0)
    if kept.min() == kept.max() and kept[0] in (0, 100):
        return replace(Rate.of(int(kept.sum()) // 100, len(kept)), n_trials=n_trials)
    return Rate(float(kept.mean()), bootstrap_interval(kept, seed=seed), len(kept), n_trials)
