"""What figures show of a ranking: the curve with its doubt, and where the scores lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import RATES
from core.attacks.membership.roc import tpr_at_fpr
from core.results import Interval, Score
from core.units import unit_rows

__all__ = ["RocPoint", "ScoreShares", "curve_with_band", "score_shares"]

RocPoint = tuple[float, Score]
"""A rate of false accusations, and the share of members that is found at it."""

_N_RATES = 24
_LEAST_RATE = 1e-4
_FEWEST_BINS, _MOST_BINS = 8, 30


def curve_with_band(
    ranking: Ranking, *, seed: int = 0, n_resamples: int = 400
) -> tuple[RocPoint, ...]:
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
    points = [
        (rate, tpr_at_fpr(ranking, rate, seed=seed, n_resamples=n_resamples).tpr) for rate in rates
    ]
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
    finite = ranking.scores[np.isfinite(ranking.scores)]
    low, high = np.quantile(finite, [0.005, 0.995]) if len(finite) else (0.0, 1.0)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    n_bins = int(np.clip(np.sqrt(len(ranking.scores)), _FEWEST_BINS, _MOST_BINS))
    edges = np.linspace(low, high, n_bins + 1)
    within = np.clip(ranking.scores, low, high)
    shares = []
    for side in (ranking.members, ~ranking.members):
        counts, _ = np.histogram(within[side], edges)
        shares.append(100 * counts / side.sum())
    return ScoreShares(edges, *shares)
