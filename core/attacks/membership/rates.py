"""True- and false-positive rates of membership inference: intervals and predictive value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri, stdtrit

from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score

RATES = (0.1, 0.01, 0.001)
"""False-positive rates at which the true-positive rate is reported."""

PRIORS = (0.5, 1 / 11, 1 / 101)
"""Prior shares of members: one non-member, ten or a hundred for each member."""


FEWEST_EXPECTED = 10
"""The fewest expected false positives at which a false-positive rate is resolvable."""

COARSE = (
    f"A rate is *coarse* if fewer than {FEWEST_EXPECTED} non-members are expected above the "
    "threshold."
)
"""The definition of "coarse", for tables and pages."""

Resolution = Literal["resolvable", "coarse", "not resolvable"]


def melded_interval(
    inside: NDArray[np.float64],
    outside: NDArray[np.float64],
    fpr: float,
    *,
    units: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    level: float = 0.95,
) -> Interval:
    """Compute the interval of the true-positive rate at a population's false-positive rate.

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
    >>> melded_interval(scores[::2], scores[1::2], 0.1).format(3)
    '0.063–0.141'
    >>> from leakscope.core.intervals import clopper_pearson
    >>> clopper_pearson(50, 500).format(3)
    '0.075–0.130'
    """
    m, n = float(len(inside)), float(len(outside))
    ranked = np.r_[np.inf, np.sort(outside)[::-1], -np.inf]
    if units is not None:
        cut = ranked[1 + int(fpr * len(outside) + 1e-9)]
        m = _effective_size(inside > cut, units[0], level)
        n = _effective_size(outside > cut, units[1], level)
    members = np.sort(inside)

    def found(places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of members above the k-th highest non-member, for each rank k."""
        thresholds = ranked[np.minimum(places, len(outside) + 1).astype(np.int64)]
        return 1 - np.searchsorted(members, thresholds, side="right") / len(inside)

    def at_least(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each share of non-members above a threshold, the least share of members."""
        return found(np.floor(shares * len(outside) + 1e-9))

    def at_most(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each share of non-members above a threshold, the largest of members."""
        return found(np.ceil(shares * len(outside) - 1e-9))

    return _melded_from_bounds(m, n, fpr, at_least, at_most, level)


def melded_curve_interval(
    points: Sequence[tuple[float, float]], fpr: float, n_members: int, n_outsiders: int
) -> Interval:
    """Compute the 95 % interval of the true-positive rate from the points of a stored ROC curve.

    Between two stored rates the curve lies between their true-positive rates.

    Parameters
    ----------
    points : sequence of (float, float)
        False-positive and true-positive rates, rising.
    n_members, n_outsiders : int
        Independent members and non-members.

    Examples
    --------
    >>> straight = [(i / 100, i / 100) for i in range(1, 101)]
    >>> melded_curve_interval(straight, 0.1, 500, 500).format(3)
    '0.061–0.148'
    """
    false, true = np.array([(0.0, 0.0), *points], dtype=np.float64).T

    def at_least(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each share of non-members above a threshold, the least share of members."""
        return true[np.searchsorted(false, shares + 1e-9, side="right") - 1]

    def at_most(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for each share of non-members above a threshold, the largest of members."""
        return np.r_[true, 1.0][np.searchsorted(false, shares - 1e-9, side="left")]

    return _melded_from_bounds(float(n_members), float(n_outsiders), fpr, at_least, at_most, 0.95)


_Share = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _melded_from_bounds(
    m: float, n: float, fpr: float, at_least: _Share, at_most: _Share, level: float
) -> Interval:
    """Compute the melded interval from functions that bound members' share above a threshold.

    `at_least` and `at_most` bound the share of members above a threshold that accuses some shares
    of the non-members.
    """
    if not (m > 0 and n > 0):
        return Interval(0.0, 1.0, level)
    counts = np.arange(math.floor(n) + 2)
    weights = np.diff(_binomial_cdf(counts, n, fpr), prepend=0.0)
    kept = weights > 1e-9
    counts, weights = counts[kept], weights[kept] / weights[kept].sum()
    low, low_weights = _merge_equal(m * at_least(np.minimum(counts / n, 1.0)), weights)
    high, high_weights = _merge_equal(m * at_most((counts + 1) / n), weights)
    tail = (1 - level) / 2

    def share_below_low(rate: float) -> float:
        """Return the CDF of the lower confidence distribution at a rate."""
        cdf = np.where(low > 0, betainc(np.maximum(low, 1e-9), m - low + 1, rate), 1.0)
        return float(low_weights @ cdf)

    def share_below_high(rate: float) -> float:
        """Return the CDF of the upper confidence distribution at a rate."""
        left = m - high
        cdf = np.where(left > 1e-9, betainc(high + 1, np.maximum(left, 1e-9), rate), 0.0)
        return float(high_weights @ cdf)

    return Interval(
        _quantile_of_cdf(share_below_low, tail), _quantile_of_cdf(share_below_high, 1 - tail), level
    )


def _merge_equal(
    values: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distinct values, and the sum of the weights of each."""
    found, places = np.unique(values, return_inverse=True)
    return found, np.bincount(places, weights=weights).astype(np.float64)


def _binomial_cdf(counts: NDArray[np.int64], n: float, share: float) -> NDArray[np.float64]:
    """Return the binomial CDF P[J ≤ count] for J ~ Binomial(n, share); n may be fractional."""
    left = n - counts
    below = betainc(np.maximum(left, 1e-9), counts + 1.0, 1 - share)
    found: NDArray[np.float64] = np.where(left > 0, below, 1.0)
    return found


def _effective_size(found: NDArray[np.bool_], units: NDArray[np.int64], level: float) -> float:
    """Return the effective sample size of a share estimated from clustered units; 0 for one unit.

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


def _quantile_of_cdf(share_below: Callable[[float], float], share: float) -> float:
    """Invert a CDF on [0, 1]: return the value below which the given share lies."""
    from scipy.optimize import brentq  # slow to import, and help does not need it

    if share_below(0.0) >= share:
        return 0.0
    if share_below(1.0) < share:
        return 1.0
    return float(brentq(lambda value: share_below(value) - share, 0.0, 1.0, xtol=1e-10))


@dataclass(frozen=True)
class AtRate:
    """The true-positive rate at a given false-positive rate, with threshold and resolution.

    Attributes
    ----------
    fpr : float
        The requested rate; the rate of the samples is at most this.
    threshold : float
        Samples with a higher score are called members.
    tpr : Score
        With `melded_interval`, which allows for a threshold that comes from the same non-members;
        its chance is the rate itself.
    n_outsiders : int
        Non-member units; their number limits the resolution of a false-positive rate.
    """

    fpr: float
    threshold: float
    tpr: Score
    n_outsiders: int

    @property
    def resolution(self) -> Resolution:
        """How well the number of non-members resolves the false-positive rate, as a word.

        "resolvable" if at least 10 false positives are expected, "coarse" if fewer are, and
        "not resolvable" if fewer than one is.
        """
        expected = self.n_outsiders * self.fpr + 1e-9
        if expected >= FEWEST_EXPECTED:
            return "resolvable"
        return "coarse" if expected >= 1 else "not resolvable"

    @property
    def is_shown(self) -> bool:
        """Whether the rate is resolvable enough for a number to be shown."""
        return self.resolution != "not resolvable"

    @property
    def mark(self) -> str:
        """The suffix of a printed rate: " (coarse)", or ""."""
        return " (coarse)" if self.resolution == "coarse" else ""

    def format(self, decimals: int = 3) -> str:
        """Format the rate with its interval, marked if coarse, or say that it is not resolvable."""
        if self.is_shown:
            return f"{self.tpr.format(decimals)}{self.mark}"
        return f"not resolvable with {self.n_outsiders:,} non-members"


def predictive_value(tpr: float, fpr: float, prior: float) -> float:
    """Return the positive predictive value of a TPR and FPR at a prior share of members.

    Bayes: TPR · π / (TPR · π + FPR · (1 − π)); NaN if no one is called a member.

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
