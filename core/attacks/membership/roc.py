"""ROC statistics of membership scores: AUC, TPR at low FPR, advantage, and thresholds.

All rates are shares in [0, 1]. No threshold is chosen on the samples that are scored:
`best_threshold` is for the attacker's own models, and `advantage` takes finished decisions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from leakscope.core.attacks.membership.ranking import Ranking, roc_curve
from leakscope.core.attacks.membership.rates import AtRate, melded_interval
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.units import cluster_ids

N_RESAMPLES = 2000


def auc(ranking: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES) -> Score:
    """Compute the AUC of a ranking with a bootstrap interval over units.

    The AUC is the share of pairs of a member and a non-member that are ranked right; ties count
    half. The interval is a percentile bootstrap of units, stratified by units that hold members,
    non-members or both. As for other small bootstraps, its ends are widened by t / z
    (`leakscope.core.intervals.bootstrap_interval`). Where all pairs are ranked right, resamples do
    not vary: the other end is then (α/2)^(1/m), m being the number of units of the rarer kind.

    Examples
    --------
    >>> scores, members = np.array([3.0, 2.0, 1.0, 2.0]), np.array([True, True, False, False])
    >>> auc(Ranking(scores, members)).value
    0.875
    """
    draws = _Bootstrap.of(ranking, seed, n_resamples)
    value = float(_weighted_aucs(ranking, np.ones((1, len(ranking.scores))))[0])
    return Score(value, draws.interval(value, draws.areas(ranking)), len(ranking.scores), 0.5)


def auc_difference(
    one: Ranking, other: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES
) -> Score:
    """Compute the difference of two rankings' AUCs on the same samples, with a paired interval.

    The bootstrap draws the same units for both.

    Raises
    ------
    InvalidInputError
        The two are not of the same samples.
    """
    if not np.array_equal(one.members, other.members):
        raise InvalidInputError(
            "Two attacks must be compared on the same samples, got different ones."
        )
    draws = _Bootstrap.of(one, seed, n_resamples)
    return _paired_difference(one, draws, other, draws)


def level_gain(
    users: Ranking, samples: Ranking, *, seed: int = 0, n_resamples: int = N_RESAMPLES
) -> Score:
    """Compute the AUC over users minus that over their samples, with a paired interval.

    The bootstrap draws users, and with each all of their samples: a resample is used for both
    levels, so that the difficulty of the drawn users affects both.

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
        raise InvalidInputError("Two levels must be compared on the same users, each named once.")
    if (rows < 0).any() or not np.array_equal(users.members[rows], samples.members):
        raise InvalidInputError(
            "A sample belongs to no user who is compared, or differs from the user in membership."
        )
    draws = _Bootstrap.of(users, seed, n_resamples)
    return _paired_difference(users, draws, samples, replace(draws, rows=rows))


def _paired_difference(
    one: Ranking, draws: _Bootstrap, other: Ranking, same_draws: _Bootstrap
) -> Score:
    """Compute the difference of two rankings' AUCs; both bootstraps draw the same units."""
    value = auc(one, n_resamples=1).value - auc(other, n_resamples=1).value
    ends = draws.ends(draws.areas(one) - same_draws.areas(other), value)
    return Score(value, Interval(*ends), len(one.scores), 0.0)


@dataclass(frozen=True)
class _Bootstrap:
    """Bootstrap resamples of units, as a weight for every unit."""

    rows: NDArray[np.int64]
    """The unit of each sample."""
    weights: NDArray[np.float64]
    """Of shape (n_resamples, n_units)."""
    n_fewest: int
    """Units of the rarer kind, members or not."""

    @classmethod
    def of(cls, ranking: Ranking, seed: int, n_resamples: int) -> _Bootstrap:
        """Draw resamples of a ranking's units, stratified by the kinds that a unit holds."""
        rows = cluster_ids(ranking.units, len(ranking.scores))
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
        """Return a ranking's AUC in each resample; NaN where it holds one kind alone."""
        step = max(1, 4_000_000 // len(ranking.scores))
        return np.concatenate(
            [
                _weighted_aucs(ranking, self.weights[i : i + step][:, self.rows])
                for i in range(0, len(self.weights), step)
            ]
        )

    def ends(self, found: NDArray[np.float64], value: float) -> tuple[float, float]:
        """Return the ends of a statistic's 95 % interval, from its value in each resample."""
        n, found = self.n_fewest, found[~np.isnan(found)]
        if n < 2 or not len(found):
            return -math.inf, math.inf
        widening = stdtrit(n - 1, 0.975) / ndtri(0.975)
        low, high = value + (np.quantile(found, [0.025, 0.975]) - value) * widening
        return float(low), float(high)

    def interval(self, value: float, found: NDArray[np.float64]) -> Interval:
        """Return an AUC's 95 % interval within [0, 1], from its value in each resample."""
        low, high = self.ends(found, value)
        sure = 0.025 ** (1 / self.n_fewest)
        low = min(low, sure) if value == 1.0 else low
        high = max(high, 1 - sure) if value == 0.0 else high
        return Interval(max(0.0, low), min(1.0, high))


def _weighted_aucs(ranking: Ranking, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a ranking's AUC under each row of sample weights; NaN if one kind has none."""
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
    """Return a ranking's true-positive rate, with interval, at an FPR of at most `fpr`.

    The threshold is the lowest one that does so among the ranking's own non-members; the interval
    allows for that, and for samples of one unit (`melded_interval`). The resolution is counted in
    units.

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
    # The lowest one above which at most a share `fpr` of the non-members lies.
    threshold = float(np.sort(outside)[::-1][int(fpr * len(outside) + 1e-9)])
    value = float((inside > threshold).mean())
    rows = cluster_ids(ranking.units, len(ranking.scores))
    units = rows[ranking.members], rows[~ranking.members]
    n_outsiders = len(np.unique(units[1]))
    interval = melded_interval(inside, outside, fpr, units=units)
    interval = Interval(min(interval.low, value), max(interval.high, value))
    return AtRate(fpr, threshold, Score(value, interval, len(inside), fpr), n_outsiders)


def best_threshold(scores: NDArray[np.float64], members: NDArray[np.bool_]) -> float:
    """Return the score threshold that maximises TPR − FPR on labelled samples.

    Only for an attacker's own models: chosen on the scored samples, it would be optimistic. It lies
    half-way between two scores, or at infinity where calling nobody is best.

    Examples
    --------
    >>> best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True]))
    2.5
    """
    ranking = Ranking(scores, members)
    found = np.unique(ranking.scores)[::-1]
    false, true = roc_curve(ranking)
    best = int(np.argmax(true - false))
    if best == 0:
        return math.inf
    above = float(found[best - 1])  # calling all gains nothing, so there is a next one
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
    """Compute the advantage TPR − FPR of membership decisions (SR20, §5; Yeom et al. 2018).

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


@dataclass(frozen=True)
class GroupThresholds:
    """Score thresholds for calling a sample a member, by group.

    Attributes
    ----------
    by_group : dict of int to float
        Of groups whose labelled samples are of both kinds.
    otherwise : float
        Of all other groups.
    """

    by_group: dict[int, float]
    otherwise: float

    @classmethod
    def fit(
        cls, scores: NDArray[np.float64], members: NDArray[np.bool_], groups: NDArray[np.int64]
    ) -> GroupThresholds:
        """Choose each group's threshold on labelled samples, where TPR − FPR is largest.

        Raises
        ------
        InvalidInputError
            All labelled samples are of one kind.
        """
        found = {}
        for group in np.unique(groups).tolist():
            own = members[groups == group]
            if own.any() and not own.all():
                found[group] = best_threshold(scores[groups == group], own)
        return cls(found, best_threshold(scores, members))

    def decide(self, scores: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the samples called members, by the threshold of each one's group."""
        numbers, places = np.unique(groups, return_inverse=True)
        cuts = np.array([self.by_group.get(int(group), self.otherwise) for group in numbers])
        decided: NDArray[np.bool_] = scores > cuts[places]
        return decided
