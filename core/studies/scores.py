"""A score with its interval and what guessing reaches, averaged over the seeds of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.results import Interval

__all__ = ["Score", "mean_over_seeds"]


@dataclass(frozen=True)
class Score:
    """A mean over seeds with its interval, in [0, 100], and what guessing reaches."""

    value: float
    ci95: Interval
    chance: float
    n: int
    n_seeds: int


def mean_over_seeds(rows: Sequence[Mapping[str, Any]]) -> Score:
    """Average rows with `value`, `ci95`, `chance` and `n`, one a seed.

    The squared standard error is the greater of the mean squared error within seeds and the
    variance between them, over their number: three seeds say little of their own spread. The
    interval of a single seed stays as it is.

    Examples
    --------
    >>> mean_over_seeds([{"value": 4.0, "ci95": [3.0, 6.0], "chance": 1.0, "n": 50}]).ci95
    Interval(low=3.0, high=6.0, level=0.95)
    """
    values = np.array([row["value"] for row in rows], dtype=float)
    mean, chance = float(values.mean()), float(np.mean([row["chance"] for row in rows]))
    n = int(np.sum([row["n"] for row in rows]))
    if len(rows) == 1:
        low, high = rows[0]["ci95"]
        return Score(mean, Interval(float(low), float(high)), chance, n, 1)
    widths = np.array([row["ci95"][1] - row["ci95"][0] for row in rows], dtype=float)
    within = float(np.mean((widths / (2 * 1.96)) ** 2))
    half = 1.96 * float(np.sqrt(max(within, float(values.var(ddof=1))) / len(values)))
    return Score(mean, Interval(mean - half, mean + half), chance, n, len(rows))
