"""Rates of true and of false accusations: exact intervals, and what an accusation is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtrit

from core.errors import InvalidInputError
from core.results import Interval, Score

__all__ = [
    "COARSE",
    "FEWEST_EXPECTED",
    "PRIORS",
    "RATES",
    "AtRate",
    "melded_curve_interval",
    "melded_interval",
    "predictive_value",
]

RATES = (0.1, 0.01, 0.001)
"""False-positive rates at which the true-positive rate is told."""

PRIORS = (0.5, 1 / 11, 1 / 101)
"""Shares of members among those asked about: one to one, to ten, to a hundred."""


FEWEST_EXPECTED = 10
"""Non-members that a rate of false accusations has to let through, so that it is resolvable."""

COARSE = (
    f"A rate is *coarse* where fewer than {FEWEST_EXPECTED} of the non-members are expected above "
    "the threshold."
)
"""What the word means, for tables and pages."""

Resolution = Literal["resolvable", "coarse", "not resolvable"]


def melded_interval(
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
    fpr: float,
    *,
    units: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    level: float = 0.95,
) -> Interval:
    """Return the interval of the true-positive rate where the population's FPR is `fpr`.

    The threshold is not known: it is the (1 − fpr) quantile of the scores of all non-members, and
    J of n independent ones lie above it, J ~ Binomial(n, fpr). Given J, the threshold lies between
    the (J + 1)-th and the J-th highest of them, and the ends of Clopper & Pearson for the members
    above are quantiles of a Beta. The interval melds the two (Fay, Proschan & Brittain 2015,
    "Combining one-sample confidence procedures"): its lower end is the 2.5 % quantile of the
    mixture over J of Beta(c, m − c + 1), c of m members lying above the J-th highest non-member;
    its upper end the 97.5 % quantile of the mixture of Beta(c + 1, m − c), c above the (J + 1)-th.

    Samples of one unit are not independent. n and m are then effective sizes (Korn & Graubard
    1998): what is left of n samples by the design effect, times (z / t)² of the number of units.

    Parameters
    ----------
    inside, outside : ndarray of float64
        Scores of members (m,) and of non-members (n,).
    units : tuple of ndarray of int (m,) and (n,), optional
        The unit of each; every sample is one of its own where it is left out.

    Returns
    -------
    Interval
        All of [0, 1] where members, or non-members, are several samples of a single unit.

    Examples
    --------
    >>> scores = np.arange(1000.0)
    >>> melded_interval(scores[::2], scores[1::2], 0.1).said(3)
    '0.063 to 0.141'
    >>> from core.intervals import clopper_pearson
    >>> clopper_pearson(50, 500).said(3)
    '0.075 to 0.130'
    """
    m, n = float(len(inside)), float(len(outside))
    ranked = np.r_[np.inf, np.sort(outside)[::-1], -np.inf]
    if units is not None:
        cut = ranked[1 + int(fpr * len(outside) + 1e-9)]
        m = _effective_size(inside > cut, units[0], level)
        n = _effective_size(outside > cut, units[1], level)
    members = np.sort(inside)

    def found(places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of members above the non-members at some places."""
        thresholds = ranked[np.minimum(places, len(outside) + 1).astype(np.int64)]
        return 1 - np.searchsorted(members, thresholds, side="right") / len(inside)

    def at_least(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return found(np.floor(shares * len(outside) + 1e-9))

    def at_most(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return found(np.ceil(shares * len(outside) - 1e-9))

    return _melded(m, n, fpr, at_least, at_most, level)


def melded_curve_interval(
    points: Sequence[tuple[float, float]], fpr: float, n_members: int, n_outsiders: int
) -> Interval:
    """Return the interval of `melded_interval` from a stored curve, of 95 %.

    Between two stored rates the curve lies between their true-positive rates.

    Parameters
    ----------
    points : sequence of (float, float)
        False-positive and true-positive rates, rising.
    n_members, n_outsiders : int
        Independent ones of either side.

    Examples
    --------
    >>> straight = [(i / 100, i / 100) for i in range(1, 101)]
    >>> melded_curve_interval(straight, 0.1, 500, 500).said(3)
    '0.061 to 0.148'
    """
    false, true = np.array([(0.0, 0.0), *points], dtype=np.float64).T

    def at_least(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return true[np.searchsorted(false, shares + 1e-9, side="right") - 1]

    def at_most(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.r_[true, 1.0][np.searchsorted(false, shares - 1e-9, side="left")]

    return _melded(float(n_members), float(n_outsiders), fpr, at_least, at_most, 0.95)


_Share = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _melded(
    m: float, n: float, fpr: float, at_least: _Share, at_most: _Share, level: float
) -> Interval:
    """Meld what n non-members tell of the threshold with what m members tell above it.

    `at_least` and `at_most` bound the share of members above a threshold that accuses some shares
    of the non-members.
    """
    if not (m > 0 and n > 0):
        return Interval(0.0, 1.0, level)
    counts = np.arange(math.floor(n) + 2)
    weights = np.diff(_binomial_below(counts, n, fpr), prepend=0.0)
    kept = weights > 1e-9
    counts, weights = counts[kept], weights[kept] / weights[kept].sum()
    low, low_weights = _distinct(m * at_least(np.minimum(counts / n, 1.0)), weights)
    high, high_weights = _distinct(m * at_most((counts + 1) / n), weights)
    tail = (1 - level) / 2

    def share_below_low(rate: float) -> float:
        cdf = np.where(low > 0, betainc(np.maximum(low, 1e-9), m - low + 1, rate), 1.0)
        return float(low_weights @ cdf)

    def share_below_high(rate: float) -> float:
        left = m - high
        cdf = np.where(left > 1e-9, betainc(high + 1, np.maximum(left, 1e-9), rate), 0.0)
        return float(high_weights @ cdf)

    return Interval(_quantile(share_below_low, tail), _quantile(share_below_high, 1 - tail), level)


def _distinct(
    values: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each value once, with the weight of all that equal it."""
    found, places = np.unique(values, return_inverse=True)
    return found, np.bincount(places, weights=weights).astype(np.float64)


def _binomial_below(counts: NDArray[np.int64], n: float, share: float) -> NDArray[np.float64]:
    """Return P[J ≤ count], J ~ Binomial(n, share), n a size that need not be whole."""
    left = n - counts
    below = betainc(np.maximum(left, 1e-9), counts + 1.0, 1 - share)
    found: NDArray[np.float64] = np.where(left > 0, below, 1.0)
    return found


def _effective_size(found: NDArray[np.bool_], units: NDArray[np.int64], level: float) -> float:
    """Return how many independent samples tell a share as well as these; 0 of a single unit.

    Korn & Graubard (1998): n / deff · (z / t)², t of as many degrees of freedom as units less one.
    Where the share is 0 or 1, so that no spread is seen, units count as one sample each.
    """
    _, rows = np.unique(units, return_inverse=True)
    n, n_units = len(found), int(rows.max()) + 1
    if n_units == n:
        return float(n)
    if n_units == 1:
        return 0.0
    share = float(found.mean())
    if share in (0.0, 1.0):
        return float(n_units)
    sizes = np.bincount(rows)
    off = np.bincount(rows, weights=found) - share * sizes
    variance = n_units / (n_units - 1) * float(off @ off) / n**2
    effect = max(1.0, variance / (share * (1 - share) / n))
    quantile = (1 + level) / 2
    return n / effect * float(ndtri(quantile) / stdtrit(n_units - 1, quantile)) ** 2


def _quantile(share_below: Callable[[float], float], share: float) -> float:
    """Return the value in [0, 1] below which a share lies; 0 or 1 where that much lies there."""
    from scipy.optimize import brentq  # takes a while to import, and help needs none of it

    if share_below(0.0) >= share:
        return 0.0
    if share_below(1.0) < share:
        return 1.0
    return float(brentq(lambda value: share_below(value) - share, 0.0, 1.0, xtol=1e-10))


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
        With `melded_interval`, which allows for a threshold that comes from the same non-members;
        its chance is the rate itself.
    n_outsiders : int
        Units that are no members, by which a false-positive rate can be told.
    """

    fpr: float
    threshold: float
    tpr: Score
    n_outsiders: int

    @property
    def resolution(self) -> Resolution:
        """How well so small a rate can be seen in so many non-members.

        "resolvable" where at least 10 are expected to be accused, "coarse" where fewer are, and
        "not resolvable" where not even one is.
        """
        expected = self.n_outsiders * self.fpr + 1e-9
        if expected >= FEWEST_EXPECTED:
            return "resolvable"
        return "coarse" if expected >= 1 else "not resolvable"

    @property
    def is_shown(self) -> bool:
        """Whether a number is shown at all; one that is coarse says so."""
        return self.resolution != "not resolvable"

    @property
    def mark(self) -> str:
        """What stands behind the number: " (coarse)", or nothing."""
        return " (coarse)" if self.resolution == "coarse" else ""

    def said(self, decimals: int = 3) -> str:
        """Return the number with its interval, marked where it is coarse, or that it is unknown."""
        if self.is_shown:
            return f"{self.tpr.said(decimals)}{self.mark}"
        return f"not resolvable with {self.n_outsiders:,} non-members"


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
