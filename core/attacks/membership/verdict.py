"""What an attack says of one sample or one user, and what that is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import AtRate, clopper_pearson, predictive_value
from core.attacks.membership.roc import tpr_at_fpr
from core.results import Interval, Score
from core.units import unit_rows

__all__ = ["Verdict", "verdict_of", "worth_at"]


@dataclass(frozen=True)
class Verdict:
    """Whether one sample or user is called a member, by a threshold that the others give.

    Attributes
    ----------
    score : float
    is_called : bool
        The score lies above the threshold.
    at : AtRate
        The threshold and the true-positive rate among the others.
    share_below : float
        Share of the other non-members with a lower score, ties half.
    """

    score: float
    is_called: bool
    at: AtRate
    share_below: float

    def worth(self, prior: float) -> Score:
        """Return how likely a member it is, where a share `prior` of all asked about are."""
        return worth_at(self.at, prior, is_called=self.is_called)


def worth_at(at: AtRate, prior: float, *, is_called: bool = True) -> Score:
    """Return the share of members among those who are called so, or among those who are not.

    By `predictive_value`. The false-positive rate is the one asked for. The ends of the interval
    take the worse end of either rate, each by its interval of 95 %, so that it is wider than one
    of 95 %.

    Examples
    --------
    >>> at = AtRate(0.01, 0.0, Score(0.5, Interval(0.4, 0.6), 100, 0.01), 1000)
    >>> round(worth_at(at, 1 / 101).value, 3)
    0.333
    >>> worth_at(at, 0.5, is_called=False).said(2)
    '0.34 [0.29, 0.38]'
    """
    n_accused = int(at.fpr * at.n_outsiders + 1e-9)
    false = clopper_pearson(n_accused, at.n_outsiders)
    true = at.tpr.ci95
    if is_called:
        value = predictive_value(at.tpr.value, at.fpr, prior)
        low = predictive_value(true.low, false.high, prior)
        high = predictive_value(true.high, false.low, prior)
    else:
        value = predictive_value(1 - at.tpr.value, 1 - at.fpr, prior)
        low = predictive_value(1 - true.high, 1 - false.low, prior)
        high = predictive_value(1 - true.low, 1 - false.high, prior)
    low, high = (0.0 if math.isnan(low) else low), (1.0 if math.isnan(high) else high)
    return Score(value, Interval(low, high), at.tpr.n, prior)


def verdict_of(ranking: Ranking, number: int, fpr: float, *, seed: int = 0) -> Verdict:
    """Return what the others say of a sample or user: it takes no part in its own threshold.

    Where units are given, the whole unit is left out.

    Raises
    ------
    InvalidInputError
        The others are all of one kind, or a rate outside (0, 1).

    Examples
    --------
    >>> ranking = Ranking(np.arange(40.0), np.arange(40) >= 20)
    >>> found = verdict_of(ranking, 39, 0.1)
    >>> found.is_called, found.at.threshold, found.share_below
    (True, 17.0, 1.0)
    """
    rows = unit_rows(ranking.units, len(ranking.scores))
    others = rows != rows[number]
    units = None
    if ranking.units is not None:
        units = [unit for unit, is_other in zip(ranking.units, others, strict=True) if is_other]
    rest = Ranking(ranking.scores[others], ranking.members[others], units)
    at = tpr_at_fpr(rest, fpr, seed=seed)
    score, outside = float(ranking.scores[number]), rest.scores[~rest.members]
    below = float(np.mean((outside < score) + 0.5 * (outside == score)))
    return Verdict(score, score > at.threshold, at, below)
