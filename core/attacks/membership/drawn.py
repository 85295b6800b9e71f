"""What figures show of a ranking: the curve with its doubt, and where the scores lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import RATES
from core.attacks.membership.roc import tpr_at_fpr
from core.results import Interval, Score
from core.units import unit_rows

__all__ = [
    "RankShares",
    "RocPoint",
    "ScoreShares",
    "curve_with_band",
    "half_above",
    "rank_shares",
    "score_counts",
    "score_shares",
    "shares_of",
]

RocPoint = tuple[float, Score]
"""A rate of false accusations, and the share of members that is found at it."""

_N_RATES = 24
_LEAST_RATE = 1e-4
_FEWEST_BINS, _MOST_BINS = 8, 30

STORED_BINS = 20
"""Ranges of scores that a row of a study holds."""

_DIGITS = 6
_RANK_RATES = (0.01, 0.03, 0.1, 0.3, 0.55, 0.75)
_NEAR = 0.1
"""How far, as a share, a stored rate may lie from one of these."""

_MOST_OFF = 0.012
"""By how much the area under a stored curve may differ from the AUC: by its coarse steps alone it
is .011 at most. Where many scores are equal it is more."""


def curve_with_band(ranking: Ranking) -> tuple[RocPoint, ...]:
    """Return the true-positive rate with its interval at rates that the non-members can tell.

    The least rate is one accusation among the non-members, or among their units; the intervals
    are those of `tpr_at_fpr`, each for its rate alone.

    Examples
    --------
    >>> found = curve_with_band(Ranking(np.arange(40.0), np.arange(40) % 2 == 0))
    >>> round(found[0][0], 3), found[-1][0], found[-1][1].value
    (0.05, 1.0, 1.0)
    """
    rows = unit_rows(ranking.units, len(ranking.scores))
    least = max(1 / len(np.unique(rows[~ranking.members])), _LEAST_RATE)
    grid = {float(rate) for rate in np.geomspace(least, 1, _N_RATES)[:-1]}
    rates = sorted(rate for rate in grid | {r for r in RATES if r > least} if rate < 1)
    points = [(rate, tpr_at_fpr(ranking, rate).tpr) for rate in rates]
    return (*points, (1.0, Score(1.0, Interval(1.0, 1.0), ranking.n_members, 1.0)))


@dataclass(frozen=True, eq=False)
class ScoreShares:
    """How many members and how many others have a score in each of some ranges.

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
    """Count scores in ranges of one width, between the quantiles that leave out 1 % in all.

    Examples
    --------
    >>> shares = score_shares(Ranking(np.array([0.0, 1.0, np.inf]), np.array([True, False, True])))
    >>> float(shares.members.sum()), float(shares.members[-1]), float(shares.outsiders[-1])
    (100.0, 50.0, 100.0)
    """
    n_bins = int(np.clip(np.sqrt(len(ranking.scores)), _FEWEST_BINS, _MOST_BINS))
    edges, inside, outside = _counted(ranking, n_bins)
    return _in_per_cent(edges, inside, outside)


def score_counts(ranking: Ranking) -> dict[str, Any]:
    """Return how scores lie, as a row of a study holds it: counts in ranges, no score itself.

    Examples
    --------
    >>> found = score_counts(Ranking(np.arange(40.0), np.arange(40) >= 20))
    >>> found["members"][:10], sum(found["members"]), sum(found["outsiders"])
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 20, 20)
    """
    edges, inside, outside = _counted(ranking, STORED_BINS)
    return {
        "ends": [float(edges[0]), float(edges[-1])],
        "members": inside.tolist(),
        "outsiders": outside.tolist(),
    }


def shares_of(stored: Mapping[str, Any]) -> ScoreShares:
    """Return what `score_counts` returned in per cent of either kind.

    Raises
    ------
    KeyError, TypeError, ValueError
        It is something else.
    """
    low, high = map(float, stored["ends"])
    sides = [np.asarray(stored[side], dtype=np.float64) for side in ("members", "outsiders")]
    if not low < high or len(sides[0]) != len(sides[1]) or not all(s.sum() > 0 for s in sides):
        raise ValueError("The counts of scores are damaged.")
    return _in_per_cent(np.linspace(low, high, len(sides[0]) + 1), *sides)


def _counted(
    ranking: Ranking, n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of ranges, and how many members and others have a score in each."""
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
    return ScoreShares(edges, *(100 * side / side.sum() for side in (inside, outside)))


def half_above(shares: ScoreShares) -> float:
    """Return above how many per cent of the others at least half of the members surely score.

    Examples
    --------
    >>> half_above(score_shares(Ranking(np.arange(40.0), np.arange(40) >= 20)))
    100.0
    """
    from_top = np.cumsum(shares.members[::-1])
    last = len(from_top) - 1 - int(np.searchsorted(from_top, 50 - 1e-9))
    return float(shares.outsiders[:last].sum())


@dataclass(frozen=True, eq=False)
class RankShares:
    """How many members have a score in each of some ranges that hold known shares of the others.

    Attributes
    ----------
    bounds : float64 array (n_ranges + 1,)
        From 0 to 100: below so many per cent of the others' scores.
    members, outsiders : float64 array (n_ranges,)
        Per cent of either kind, the lowest scores first.
    """

    bounds: NDArray[np.float64]
    members: NDArray[np.float64]
    outsiders: NDArray[np.float64]


def rank_shares(points: Sequence[tuple[float, float]], area: float) -> RankShares | None:
    """Return from a curve how scores lie, told by the scores of the others.

    Between two rates of false accusations lie just so many of the others, and as many of the
    members as the curve rises there. None where many scores are equal: the curve then does not
    say how many of the others really lie between, which the area under it betrays.

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
