"""How well scores tell those that a model was trained on from those that it was not.

All rates are shares in [0, 1]. Nothing is decided here by a cut-off that was chosen on what is
scored: `best_threshold` is for the attacker's own models, `advantage` takes decisions made.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from core.attacks.membership.ranking import Ranking, curve, shuffled
from core.attacks.membership.rates import (
    PRIORS,
    RATES,
    AtRate,
    melded_interval,
    predictive_value,
)
from core.errors import InvalidInputError
from core.results import Interval, Score
from core.units import unit_rows

__all__ = [
    "PRIORS",
    "RATES",
    "AtRate",
    "Ranking",
    "advantage",
    "auc",
    "auc_difference",
    "best_threshold",
    "curve",
    "level_gain",
    "predictive_value",
    "shuffled",
    "tpr_at_fpr",
]

N_RESAMPLES = 2000


def auc(ranking: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES) -> Score:
    """Return the share of pairs of a member and a non-member that are ranked right; ties half.

    Its interval is a percentile bootstrap of units, drawn apart among those that hold members,
    those that hold none, and those that hold both. As of other bootstraps of few, its ends stand
    t / z times as far (`core.intervals.bootstrap_interval`). Where all pairs are ranked right no
    resample says how far that can be trusted: the other end is then (α/2)^(1/m), of the m units
    of the rarer kind.

    Examples
    --------
    >>> scores, members = np.array([3.0, 2.0, 1.0, 2.0]), np.array([True, True, False, False])
    >>> auc(Ranking(scores, members)).value
    0.875
    """
    draws = _Draws.of(ranking, seed, n_resamples)
    value = float(_areas(ranking, np.ones((1, len(ranking.scores))))[0])
    return Score(value, draws.interval(value, draws.areas(ranking)), len(ranking.scores), 0.5)


def auc_difference(
    one: Ranking, other: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return by how much the AUC of one attack exceeds that of another, on the same samples.

    The bootstrap draws the same units for both.

    Raises
    ------
    InvalidInputError
        The two are not of the same samples.
    """
    if not np.array_equal(one.members, other.members):
        raise InvalidInputError("Two attacks are compared on the same samples, got different ones.")
    draws = _Draws.of(one, seed, n_resamples)
    return _less(one, draws, other, draws)


def level_gain(
    users: Ranking, samples: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES
) -> Score:
    """Return by how much the AUC over users exceeds that over their samples.

    The bootstrap draws users, and with each all of their samples: one resample carries both levels,
    so that what makes users of a draw easy to tell counts on both sides.

    Parameters
    ----------
    users : Ranking
        Its units name each user once.
    samples : Ranking
        Its units name the user of each sample.

    Raises
    ------
    InvalidInputError
        The two are not of the same users, all of a user's samples of the user's kind.

    Examples
    --------
    >>> members = np.array([True, True, False, False])
    >>> users = Ranking(np.array([4.0, 3.0, 1.0, 2.0]), members, ["a", "b", "c", "d"])
    >>> samples = Ranking(np.array([4.0, 1.0, 1.0, 2.0]), members, ["a", "b", "c", "d"])
    >>> level_gain(users, samples).value
    0.375
    """
    places = {user: i for i, user in enumerate(users.units or ())}
    rows = np.array([places.get(user, -1) for user in samples.units or ()])
    if not len(places) == len(users.scores) == len(np.unique(rows[rows >= 0])):
        raise InvalidInputError("Two levels are compared on the same users, each named once.")
    if (rows < 0).any() or not np.array_equal(users.members[rows], samples.members):
        raise InvalidInputError("A sample is of no user who is compared, or of another kind.")
    draws = _Draws.of(users, seed, n_resamples)
    return _less(users, draws, samples, replace(draws, rows=rows))


def _less(one: Ranking, draws: _Draws, other: Ranking, same_draws: _Draws) -> Score:
    """Return an AUC less another; each resample weighs the same units in both."""
    value = auc(one, n_resamples=1).value - auc(other, n_resamples=1).value
    ends = draws.ends(draws.areas(one) - same_draws.areas(other), value)
    return Score(value, Interval(*ends), len(one.scores), 0.0)


@dataclass(frozen=True)
class _Draws:
    """Which units each resample holds, as the weight of every unit."""

    rows: NDArray[np.int64]
    """The unit of each sample."""
    weights: NDArray[np.float64]
    """Of shape (n_resamples, n_units)."""
    n_fewest: int
    """Units of the rarer kind, members or not."""

    @classmethod
    def of(cls, ranking: Ranking, seed: int, n_resamples: int) -> _Draws:
        rows = unit_rows(ranking.units, len(ranking.scores))
        n_units = int(rows.max()) + 1
        holds = np.zeros((2, n_units), dtype=bool)
        holds[0, rows[ranking.members]] = holds[1, rows[~ranking.members]] = True
        rng = np.random.default_rng([seed, 5])
        weights = np.zeros((n_resamples, n_units))
        for kind in ((True, False), (False, True), (True, True)):
            drawn_from = np.flatnonzero((holds == np.array(kind)[:, None]).all(0))
            if len(drawn_from):
                share = np.full(len(drawn_from), 1 / len(drawn_from))
                weights[:, drawn_from] = rng.multinomial(len(drawn_from), share, n_resamples)
        return cls(rows, weights, int(holds.sum(1).min()))

    def areas(self, ranking: Ranking) -> NDArray[np.float64]:
        """Return the area of each resample; those that drew one kind alone are left out as NaN."""
        step = max(1, 4_000_000 // len(ranking.scores))
        return np.concatenate(
            [
                _areas(ranking, self.weights[i : i + step][:, self.rows])
                for i in range(0, len(self.weights), step)
            ]
        )

    def ends(self, found: NDArray[np.float64], value: float) -> tuple[float, float]:
        """Return the ends of the interval of 95 %."""
        n, found = self.n_fewest, found[~np.isnan(found)]
        if n < 2 or not len(found):
            return -math.inf, math.inf
        widening = stdtrit(n - 1, 0.975) / ndtri(0.975)
        low, high = value + (np.quantile(found, [0.025, 0.975]) - value) * widening
        return float(low), float(high)

    def interval(self, value: float, found: NDArray[np.float64]) -> Interval:
        """Return the interval of an area."""
        low, high = self.ends(found, value)
        sure = 0.025 ** (1 / self.n_fewest)
        low = min(low, sure) if value == 1.0 else low
        high = max(high, 1 - sure) if value == 0.0 else high
        return Interval(max(0.0, low), min(1.0, high))


def _areas(ranking: Ranking, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the area under the curve for each row of weights of samples; NaN without a kind."""
    order = np.argsort(ranking.scores, kind="stable")
    ranked = ranking.scores[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    members = ranking.members[order]
    weights = weights[:, order]
    inside = np.add.reduceat(weights * members, starts, axis=1)
    outside = np.add.reduceat(weights * ~members, starts, axis=1)
    below = np.cumsum(outside, axis=1) - outside / 2
    pairs = inside.sum(1) * outside.sum(1)
    with np.errstate(invalid="ignore"):
        areas: NDArray[np.float64] = np.where(pairs > 0, (inside * below).sum(1) / pairs, np.nan)
    return areas


def tpr_at_fpr(ranking: Ranking, fpr: float) -> AtRate:
    """Return which share of members is found where at most `fpr` of the others are accused.

    The lowest threshold that accuses no more is taken, of the non-members of the ranking itself,
    as every curve does; the interval allows for that, and for samples of one unit
    (`melded_interval`). How rates are resolved is counted in units.

    Raises
    ------
    InvalidInputError
        A rate outside (0, 1).

    Examples
    --------
    >>> scores = np.array([9.0, 8.0, 1.0, *range(7), 8.5, 0.5, 0.6])
    >>> at = tpr_at_fpr(Ranking(scores, np.arange(13) < 3), 0.1)
    >>> at.threshold, round(at.tpr.value, 3)
    (6.0, 0.667)
    """
    if not 0 < fpr < 1:
        raise InvalidInputError(f"A false-positive rate must lie between 0 and 1, got {fpr}.")
    inside, outside = ranking.scores[ranking.members], ranking.scores[~ranking.members]
    threshold = _threshold(outside, fpr)
    value = float((inside > threshold).mean())
    rows = unit_rows(ranking.units, len(ranking.scores))
    units = rows[ranking.members], rows[~ranking.members]
    n_outsiders = len(np.unique(units[1]))
    interval = melded_interval(inside, outside, fpr, units=units)
    interval = Interval(min(interval.low, value), max(interval.high, value))
    return AtRate(fpr, threshold, Score(value, interval, len(inside), fpr), n_outsiders)


def _threshold(outside: NDArray[np.float64], fpr: float) -> float:
    """Return the lowest score above which at most a share of the non-members lies."""
    n_allowed = int(fpr * len(outside) + 1e-9)
    return float(np.sort(outside)[::-1][n_allowed])


def best_threshold(scores: NDArray[np.float64], members: NDArray[np.bool_]) -> float:
    """Return the threshold above which calling a member gains most: TPR − FPR is largest.

    For an attacker's own models alone: chosen on what is scored, it flatters. It lies half-way
    between two scores, or at infinity where calling nobody is best.

    Examples
    --------
    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    2.5
    """
    ranking = Ranking(scores, members)
    found = np.unique(ranking.scores)[::-1]
    false, true = curve(ranking)
    best = int(np.argmax(true - false))
    if best == 0:
        return math.inf
    above = float(found[best - 1])  # calling all gains nothing, so that there is a next
    below = float(found[best])
    half = (above + below) / 2
    return half if below <= half < above else below


def advantage(
    decided: NDArray[np.bool_],
    members: NDArray[np.bool_],
    units: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
    n_resamples: int = N_RESAMPLES,
) -> Score:
    """Return TPR − FPR of decisions that were made (Song & Raghunathan 2020, §5; Yeom et al. 2018).

    It is 2 · AUC − 1 of the decisions as scores, and so is its interval.

    Parameters
    ----------
    decided : ndarray of bool, shape (n,)
        Which samples are called members.

    Examples
    --------
    >>> advantage(np.array([True, True, False, True]), np.array([True, True, False, False])).value
    0.5
    """
    found = auc(
        Ranking(np.asarray(decided).astype(np.float64), members, units),
        seed=seed,
        n_resamples=n_resamples,
    )
    ends = Interval(2 * found.ci95.low - 1, 2 * found.ci95.high - 1)
    return Score(2 * found.value - 1, ends, found.n, 0.0)
