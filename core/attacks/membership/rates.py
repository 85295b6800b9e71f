"""Rates of true and of false accusations: exact intervals, and what an accusation is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import betaincinv

from core.errors import InvalidInputError
from core.results import Interval, Score

__all__ = ["PRIORS", "RATES", "AtRate", "clopper_pearson", "predictive_value"]

RATES = (0.1, 0.01, 0.001)
"""False-positive rates at which the true-positive rate is told."""

PRIORS = (0.5, 1 / 11, 1 / 101)
"""Shares of members among those asked about: one to one, to ten, to a hundred."""


def clopper_pearson(found: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the exact interval of a share of n independent trials, in [0, 1].

    Clopper & Pearson (1934): the ends are quantiles of Beta(k, n − k + 1) and Beta(k + 1, n − k).

    Examples
    --------
    >>> clopper_pearson(0, 10).said(3)
    '0.000 to 0.308'
    """
    if not 0 <= found <= n:
        raise InvalidInputError(f"A share must be of at least as many trials, got {found} of {n}.")
    tail = (1 - level) / 2
    low = float(betaincinv(found, n - found + 1, tail)) if found else 0.0
    high = float(betaincinv(found + 1, n - found, 1 - tail)) if found < n else 1.0
    return Interval(low, high, level)


@dataclass(frozen=True)
class AtRate:
    """The true-positive rate at a false-positive rate.

    Attributes
    ----------
    fpr : float
        The rate that was asked for; that of the samples is at most that.
    threshold : float
        Above it a sample is called a member.
    tpr : Score
        With the interval of Clopper & Pearson, or of a bootstrap of units where that is wider;
        its chance is the rate itself.
    n_outsiders : int
        Units that are no members, by which a false-positive rate can be told.
    """

    fpr: float
    threshold: float
    tpr: Score
    n_outsiders: int

    @property
    def is_resolvable(self) -> bool:
        """Whether so small a rate can be seen in so many non-members."""
        return self.n_outsiders * self.fpr >= 1 - 1e-9

    def said(self, decimals: int = 3) -> str:
        """Return the number with its interval, or that it cannot be told."""
        if self.is_resolvable:
            return self.tpr.said(decimals)
        return f"not resolvable with {self.n_outsiders:,} non-members"

    def to_dict(self) -> dict[str, Any] | str:
        """Return the JSON-able form; a sentence where it cannot be told."""
        return {"fpr": self.fpr, **self.tpr.to_dict()} if self.is_resolvable else self.said()


def predictive_value(tpr: float, fpr: float, prior: float) -> float:
    """Return the share of true accusations where a share `prior` of all are members.

    Bayes: TPR · π / (TPR · π + FPR · (1 − π)); NaN where nobody is accused.

    Examples
    --------
    >>> round(predictive_value(0.5, 0.01, 1 / 101), 3)
    0.333
    """
    for name, value in (("tpr", tpr), ("fpr", fpr), ("prior", prior)):
        if not 0 <= value <= 1:
            raise InvalidInputError(f"{name} must lie in [0, 1], got {value}.")
    accused = tpr * prior + fpr * (1 - prior)
    return tpr * prior / accused if accused else math.nan
