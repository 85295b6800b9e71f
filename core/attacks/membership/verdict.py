"""What an attack says of one sample or one user, and what that is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import AtRate, predictive_value
from core.errors import InvalidInputError
from core.intervals import clopper_pearson
from core.results import Interval, Score
from core.units import unit_rows

__all__ = ["Verdict", "verdict_of", "worth_at"]


@dataclass(frozen=True)
class Verdict:
    """Whether one sample or user is called a member, by a threshold that shadow models gave.

    Attributes
    ----------
    score : float
    is_called : bool
        The score lies above the threshold.
    at : AtRate
        The threshold, and what the shadow models reach at it.
    accused : Score
        Share of the target's other non-members that lie above it, which an attacker does not know;
        its chance is the rate that was asked for.
    share_below : float
        Share of the target's other non-members with a lower score, ties half.
    """

    score: float
    is_called: bool
    at: AtRate
    accused: Score
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


def verdict_of(ranking: Ranking, number: int, at: AtRate) -> Verdict:
    """Return what a threshold of shadow models says of a sample or user of the target.

    Nobody of the target takes part in the threshold. What is said of the other non-members leaves
    out the whole unit of whoever is judged, where units are given.

    Parameters
    ----------
    at : AtRate
        Of shadow models that play the target: `classifiers.calibration.calibrated_rates`.

    Raises
    ------
    InvalidInputError
        There is no other non-member.

    Examples
    --------
    >>> ranking = Ranking(np.arange(40.0), np.arange(40) >= 20)
    >>> at = AtRate(0.1, 17.0, Score(0.9, Interval(0.7, 1.0), 30, 0.1), 30)
    >>> found = verdict_of(ranking, 39, at)
    >>> found.is_called, found.accused.value, found.share_below
    (True, 0.1, 1.0)
    """
    rows = unit_rows(ranking.units, len(ranking.scores))
    others = (rows != rows[number]) & ~ranking.members
    if not others.any():
        raise InvalidInputError("There is no other non-member to hold this one against.")
    score, outside = float(ranking.scores[number]), ranking.scores[others]
    below = float(np.mean((outside < score) + 0.5 * (outside == score)))
    n_accused = int((outside > at.threshold).sum())
    interval = clopper_pearson(n_accused, len(outside))
    accused = Score(n_accused / len(outside), interval, len(outside), at.fpr)
    return Verdict(score, score > at.threshold, at, accused, below)
