"""Summaries of a membership ranking for figures: ROC curve with intervals, score histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import RATES
from leakscope.core.attacks.membership.roc import tpr_at_fpr
from leakscope.core.results import Interval, Score
from leakscope.core.units import cluster_ids

RocPoint = tuple[float, Score]
"""A false-positive rate and the true-positive rate at it."""

_N_RATES = 24
_LEAST_RATE = 1e-4
_FEWEST_BINS, _MOST_BINS = 8, 30

STORED_BINS = 20
"""Bins of scores that a row of a study holds."""

_DIGITS = 6
_RANK_RATES = (0.01, 0.03, 0.1, 0.3, 0.55, 0.75)
_NEAR = 0.1
"""The largest relative distance of a stored rate from one of `_RANK_RATES`."""

_MOST_OFF = 0.012
"""The most that the area under a stored curve may differ from the AUC: its coarse steps cause
.011 at most, and equal scores cause more."""


def curve_with_band(ranking: Ranking) -> tuple[RocPoint, ...]:
    """Compute a ranking's ROC curve with intervals, at false-positive rates that can be resolved.

    The least rate is one accusation among the non-members, or among their units; the intervals
    are those of `tpr_at_fpr`, each for its rate alone.

    Examples
    --------
    >>> found = curve_with_band(Ranking(np.arange(40.0), np.arange(40) % 2 == 0))
    >>> round(found[0][0], 3), found[-1][0], found[-1][1].value
    (0.05, 1.0, 1.0)
    """
    rows = cluster_ids(ranking.units, len(ranking.scores))
    least = max(1 / len(np.unique(rows[~ranking.members])), _LEAST_RATE)
    grid = {float(rate) for rate in np.geomspace(least, 1, _N_RATES)[:-1]}
    rates = sorted(rate for rate in grid | {r for r in RATES if r > least} if rate < 1)
    points = [(rate, tpr_at_fpr(ranking, rate).tpr) for rate in rates]
    return (*points, (1.0, Score(1.0, Interval(1.0, 1.0), ranking.n_members, 1.0)))


@dataclass(frozen=True, eq=False)
class ScoreShares:
    """Histograms of the scores of members and of non-members, in per cent.

    Attributes
    ----------
    edges : float64 array (n_bins + 1,)
    members, outsiders : float64 array (n_bins,)
        Per cent of either kind; scores beyond the edges count in the ranges at the ends.
    """

    edges: NDArray[np.float64]
    members: NDArray[np.float64]
    outsiders: NDArray[np.float64]


def score_shares(ranking: Ranking) -> ScoreShares:
    """Histogram the scores of a ranking in equal bins between their 0.5 % and 99.5 % quantiles.

    Examples
    --------
    >>> shares = score_shares(Ranking(np.array([0.0, 1.0, np.inf]), np.array([True, False, True])))
    >>> float(shares.members.sum()), float(shares.members[-1]), float(shares.outsiders[-1])
    (100.0, 50.0, 100.0)
    """
    n_bins = int(np.clip(np.sqrt(len(ranking.scores)), _FEWEST_BINS, _MOST_BINS))
    edges, inside, outside = _histograms(ranking, n_bins)
    return _in_per_cent(edges, inside, outside)


def score_counts(ranking: Ranking) -> dict[str, Any]:
    """Histogram a ranking's scores as a JSON-able record: counts in bins, without single scores.

    Examples
    --------
    >>> found = score_counts(Ranking(np.arange(40.0), np.arange(40) >= 20))
    >>> found["members"][:10], sum(found["members"]), sum(found["outsiders"])
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 20, 20)
    """
    edges, inside, outside = _histograms(ranking, STORED_BINS)
    return {
        "ends": [float(edges[0]), float(edges[-1])],
        "members": inside.tolist(),
        "outsiders": outside.tolist(),
    }


def shares_from_counts(stored: Mapping[str, Any]) -> ScoreShares:
    """Convert a record of `score_counts` to histograms in per cent.

    Raises
    ------
    KeyError, TypeError, ValueError
        It is something else.
    """
    low, high = map(float, stored["ends"])
    sides = [np.asarray(stored[side], dtype=np.float64) for side in ("members", "outsiders")]
    if not low < high or len(sides[0]) != len(sides[1]) or not all(s.sum() > 0 for s in sides):
        raise ValueError("The stored score counts are damaged.")
    return _in_per_cent(np.linspace(low, high, len(sides[0]) + 1), *sides)


def _histograms(
    ranking: Ranking, n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Histogram a ranking's scores; return bin edges and counts of members and non-members."""
    finite = ranking.scores[np.isfinite(ranking.scores)]
    ends = np.quantile(finite, [0.005, 0.995]) if len(finite) else (0.0, 1.0)
    low, high = (float(f"{end:.{_DIGITS}g}") for end in ends)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, n_bins + 1)
    within = np.clip(ranking.scores, low, high)
    inside, outside = (
        np.histogram(within[side], edges)[0] for side in (ranking.members, ~ranking.members)
    )
    return edges, inside, outside


def _in_per_cent(
    edges: NDArray[np.float64], inside: NDArray[Any], outside: NDArray[Any]
) -> ScoreShares:
    """Convert histogram counts of members and non-members to per cent."""
    return ScoreShares(edges, *(100 * side / side.sum() for side in (inside, outside)))


def percentile_half_above(shares: ScoreShares) -> float:
    """Return the percentage of non-members below the score that half of the members exceed.

    Examples
    --------
    >>> percentile_half_above(score_shares(Ranking(np.arange(40.0), np.arange(40) >= 20)))
    100.0
    """
    from_top = np.cumsum(shares.members[::-1])
    last = len(from_top) - 1 - int(np.searchsorted(from_top, 50 - 1e-9))
    return float(shares.outsiders[:last].sum())


@dataclass(frozen=True, eq=False)
class RankShares:
    """Shares of members' scores between quantiles of the non-members' scores.

    Attributes
    ----------
    bounds : float64 array (n_ranges + 1,)
        From 0 to 100: percentiles of the non-members' scores.
    members, outsiders : float64 array (n_ranges,)
        Per cent of either kind, the lowest scores first.
    """

    bounds: NDArray[np.float64]
    members: NDArray[np.float64]
    outsiders: NDArray[np.float64]


def rank_shares(points: Sequence[tuple[float, float]], area: float) -> RankShares | None:
    """Derive the shares of members between non-member quantiles from a ROC curve, or None.

    Between two false-positive rates lie that share of the non-members, and the share of members by
    which the curve rises. None where many scores are equal: the curve then does not say how many
    non-members lie between, which shows in the area under it.

    Parameters
    ----------
    points : sequence of (float, float)
        False-positive and true-positive rates, rising, without (0, 0).
    area : float
        The AUC as it was measured.

    Examples
    --------
    >>> found = rank_shares([(0.1, 0.1), (0.55, 0.55), (1.0, 1.0)], 0.5)
    >>> found.bounds.round(6).tolist(), found.members.round(6).tolist()
    ([0.0, 45.0, 90.0, 100.0], [45.0, 45.0, 10.0])
    """
    false, true = np.array([(0.0, 0.0), *points], dtype=np.float64).T
    if abs(float(np.trapezoid(true, false)) - area) > _MOST_OFF:
        return None
    kept = [0, len(false) - 1]
    for rate in _RANK_RATES:
        nearest = int(np.abs(false - rate).argmin())
        if nearest not in kept and abs(false[nearest] - rate) <= _NEAR * rate:
            kept.append(nearest)
    order = sorted(kept, reverse=True)
    bounds = 100 * (1 - false[order])
    return RankShares(bounds, -100 * np.diff(true[order]), np.diff(bounds))
