"""The verdict of an attack on one sample or user, and its predictive value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import AtRate, predictive_value
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import clopper_pearson
from leakscope.core.results import Interval, Score
from leakscope.core.units import cluster_ids


@dataclass(frozen=True)
class Verdict:
    """Whether one sample or user is called a member, by a threshold from shadow models.

    Attributes
    ----------
    score : float
    is_called : bool
        The score lies above the threshold.
    at : AtRate
        The threshold, and the shadow models' rates at it.
    accused : Score
        Share of the target's other non-members above the threshold. An attacker does not know it;
        its chance is the requested rate.
    share_below : float
        Share of the target's other non-members with a lower score, ties half.
    """

    score: float
    is_called: bool
    at: AtRate
    accused: Score
    share_below: float

    def probability(self, prior: float) -> Score:
        """Return the probability of membership given the verdict and a prior share of members."""
        return membership_probability(self.at, prior, is_called=self.is_called)


def membership_probability(at: AtRate, prior: float, *, is_called: bool = True) -> Score:
    """Return the probability of membership of those called members, or of those not called.

    By `predictive_value`, with the requested false-positive rate. The interval combines the worse
    ends of the 95 % intervals of both rates, so its level is above 95 %.

    Examples
    --------
    >>> at = AtRate(0.01, 0.0, Score(0.5, Interval(0.4, 0.6), 100, 0.01), 1000)
    >>> round(membership_probability(at, 1 / 101).value, 3)
    0.333
    >>> membership_probability(at, 0.5, is_called=False).format(2)
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
    """Judge one entry of a ranking, a sample or user, by a threshold from shadow models.

    The threshold does not use the target. The comparison with other non-members leaves out the
    whole unit of the judged sample, where units are given.

    Parameters
    ----------
    at : AtRate
        Of shadow models in the target's place: `classifiers.evaluation.shadow_rates`.

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
    rows = cluster_ids(ranking.units, len(ranking.scores))
    others = (rows != rows[number]) & ~ranking.members
    if not others.any():
        raise InvalidInputError("There is no other non-member to compare this one with.")
    score, outside = float(ranking.scores[number]), ranking.scores[others]
    below = float(np.mean((outside < score) + 0.5 * (outside == score)))
    n_accused = int((outside > at.threshold).sum())
    interval = clopper_pearson(n_accused, len(outside))
    accused = Score(n_accused / len(outside), interval, len(outside), at.fpr)
    return Verdict(score, score > at.threshold, at, accused, below)
