"""Exposure: how many bits of a canary's randomness a model has taken up.

Functions of log-perplexities alone; which model gave them does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.results import NO_INTERVAL, Interval, Score

__all__ = ["Measured", "estimate", "exposure_of_rank", "high_of_chance", "mean_of_chance",
           "measure", "rank_of"]  # fmt: skip

_Bits = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """The exposure of one canary under one model.

    Attributes
    ----------
    exposure : Score
        In bits; its n is the number of candidates compared with. Without an interval where all
        of R was ranked: then nothing is left to chance but the model.
    rank : float
        Of the canary in R; where R was sampled, the rank that the estimate stands for.
    is_exact : bool
        Whether all of R was ranked.
    at_least : float
        Bits that the sample alone shows, without a law: the lower end of an exact binomial
        interval of 95 %; the exposure itself where it is exact.
    bits : float
        Log-perplexity of the canary.
    """

    exposure: Score
    rank: float
    is_exact: bool
    at_least: float
    bits: float


def rank_of(own: float, others: _Bits) -> int:
    """Return the place of a canary among all fillings of its format, the likeliest first.

    Implements Carlini et al. (2019), Definition 2 (METHODS §4): rank(s[r]) =
    |{r' ∈ R : P(s[r']) ≤ P(s[r])}|. Differs from the paper: nothing; of equals the canary is last.

    Examples
    --------
    >>> rank_of(3.0, np.array([2.0, 3.0, 4.0]))
    3
    """
    return 1 + int(np.sum(others <= own))


def exposure_of_rank(rank: float, size: int) -> float:
    """Return log₂|R| − log₂ rank, in bits.

    Implements Carlini et al. (2019), Definition 4 (METHODS §4): exposure = log₂|R| − log₂ rank.
    Differs from the paper: nothing.

    Examples
    --------
    >>> exposure_of_rank(1, 1024), exposure_of_rank(1024, 1024)
    (10.0, 0.0)
    """
    return math.log2(size) - math.log2(rank)


def mean_of_chance(size: int) -> float:
    """Return the mean exposure of a canary that was never planted: its rank is uniform.

    E = log₂|R| − log₂(|R|!) / |R|, which nears log₂ e = 1.4427 bits for a large R.

    Examples
    --------
    >>> round(mean_of_chance(2), 4), round(mean_of_chance(10**6), 4)
    (0.5, 1.4427)
    """
    return math.log2(size) - math.lgamma(size + 1) / math.log(2) / size


def high_of_chance(size: int, share: float = 0.05) -> float:
    """Return the exposure that at most this share of canaries that were never planted exceeds.

    Their rank is uniform, so that P(exposure > e) is about 2^−e.

    Examples
    --------
    >>> round(high_of_chance(10_000), 2), high_of_chance(16)
    (4.32, 4.0)
    """
    return math.log2(size / (math.floor(share * size) + 1))


def measure(own: float, others: _Bits, size: int, *, seed: int = 0) -> Measured:
    """Return the exposure of a canary: exact where all others of R are given, else estimated."""
    if len(others) == size - 1:
        rank = rank_of(own, others)
        found = exposure_of_rank(rank, size)
        score = Score(found, NO_INTERVAL, size, mean_of_chance(size))
        return Measured(score, rank, True, found, own)
    score = estimate(own, others, size, seed=seed)
    rank = 2.0 ** (math.log2(size) - score.value)
    return Measured(score, rank, False, _at_least(own, others, size), own)


def estimate(
    own: float, sampled: _Bits, size: int, *, seed: int = 0, n_resamples: int = 20
) -> Score:
    """Return the exposure by a skew-normal law of log-perplexities, with its bootstrap interval.

    Implements Carlini et al. (2019), §4.3: exposure ≈ −log₂ ∫_{−∞}^{P(s[r])} ρ(x) dx, ρ the
    skew-normal density fitted by maximum likelihood to the P of sampled fillings.
    Differs from the paper: the fit begins at the law with the sample's moments; the answer is cut
    at log₂|R|, which no rank exceeds; the interval is ours, 1.96 standard errors of a bootstrap, of
    the samples alone: whether the law holds in its tail it does not tell.

    Raises
    ------
    InvalidInputError
        Fewer than 20 samples.
    """
    if len(sampled) < 20:
        raise InvalidInputError(f"The estimate needs at least 20 samples, got {len(sampled)}.")
    most, chance = math.log2(size), mean_of_chance(size)
    rng = np.random.default_rng([seed, 33])
    value = _by_law(own, sampled, most)
    drawn = [_by_law(own, rng.choice(sampled, len(sampled)), most) for _ in range(n_resamples)]
    half = 1.96 * float(np.std(drawn, ddof=1))
    interval = Interval(max(0.0, value - half), min(most, value + half))
    return Score(value, interval, len(sampled), chance)


def _by_law(own: float, sampled: _Bits, most: float) -> float:
    from scipy.stats import skewnorm  # takes a third of a second to load

    if float(np.ptp(sampled)) < 1e-9:  # a model that tells nothing apart
        return most if own < float(sampled.min()) - 1e-9 else 0.0
    start = skewnorm.fit(sampled, method="MM")
    shape, place, scale = skewnorm.fit(sampled, start[0], loc=start[1], scale=start[2])
    found = -float(skewnorm.logcdf(own, shape, place, scale)) / math.log(2)
    return min(max(found, 0.0), most) if not math.isnan(found) else most


def _at_least(own: float, sampled: _Bits, size: int) -> float:
    """Return −log₂ of the upper end of the share of R that is as likely (Clopper–Pearson)."""
    from scipy.stats import beta

    n, n_before = len(sampled), int(np.sum(sampled <= own))
    if n_before >= n:
        return 0.0
    upper = float(beta.ppf(0.975, n_before + 1, n - n_before))
    return min(-math.log2(upper), math.log2(size))
