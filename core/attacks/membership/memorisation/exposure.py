"""Exposure of a canary (Carlini et al. 2019): bits of its randomness that a model memorised.

All functions take log-perplexities, whatever the model.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.results import NO_INTERVAL, Interval, Score

_Bits = NDArray[np.float64]
_STEEPEST = 100.0
"""The greatest shape that a fit of a skew-normal starts from; it is nearly a half-normal."""


@dataclass(frozen=True)
class CanaryExposure:
    """The exposure of one canary under one model.

    Attributes
    ----------
    exposure : Score
        In bits; its n is the number of candidates compared with. Without an interval if all of R
        was ranked, since then only the model is random.
    rank : float
        The canary's rank in R; if R was sampled, the rank that corresponds to the estimate.
    is_exact : bool
        Whether all of R was ranked.
    at_least : float
        A lower bound from the sample without a distribution: the lower end of an exact 95 %
        binomial interval; the exposure itself if exact.
    bits : float
        Log-perplexity of the canary.
    """

    exposure: Score
    rank: float
    is_exact: bool
    at_least: float
    bits: float


def rank_of(own: float, others: _Bits) -> int:
    """Return a canary's rank by log-perplexity among all candidates, 1 for the likeliest.

    Implements Carlini et al. (2019), Definition 2 (METHODS §4): rank(s[r]) =
    |{r' ∈ R : P(s[r']) ≤ P(s[r])}|. Differs from the paper: nothing; of equals the canary is last.

    Examples
    --------
    >>> rank_of(3.0, np.array([2.0, 3.0, 4.0]))
    3
    """
    return 1 + int(np.sum(others <= own))


def exposure_of_rank(rank: float, size: int) -> float:
    """Return the exposure of a rank in bits: log₂|R| − log₂ rank.

    Implements Carlini et al. (2019), Definition 4 (METHODS §4): exposure = log₂|R| − log₂ rank.
    Differs from the paper: nothing.

    Examples
    --------
    >>> exposure_of_rank(1, 1024), exposure_of_rank(1024, 1024)
    (10.0, 0.0)
    """
    return math.log2(size) - math.log2(rank)


def mean_chance_exposure(size: int) -> float:
    """Return the mean exposure of a canary that was not inserted, whose rank is uniform.

    E = log₂|R| − log₂(|R|!) / |R|, which nears log₂ e = 1.4427 bits for a large R.

    Examples
    --------
    >>> round(mean_chance_exposure(2), 4), round(mean_chance_exposure(10**6), 4)
    (0.5, 1.4427)
    """
    return math.log2(size) - math.lgamma(size + 1) / math.log(2) / size


def high_chance_exposure(size: int, share: float = 0.05) -> float:
    """Return the exposure exceeded by at most a given share of canaries that were not inserted.

    Their rank is uniform, so that P(exposure > e) is about 2^−e.

    Examples
    --------
    >>> round(high_chance_exposure(10_000), 2), high_chance_exposure(16)
    (4.32, 4.0)
    """
    return math.log2(size / (math.floor(share * size) + 1))


def measure(own: float, others: _Bits, size: int, *, seed: int = 0) -> CanaryExposure:
    """Measure a canary's exposure from log-perplexities: exact if all candidates are given."""
    if len(others) == size - 1:
        rank = rank_of(own, others)
        found = exposure_of_rank(rank, size)
        score = Score(found, NO_INTERVAL, size, mean_chance_exposure(size))
        return CanaryExposure(score, rank, True, found, own)
    score = estimate(own, others, size, seed=seed)
    rank = 2.0 ** (math.log2(size) - score.value)
    return CanaryExposure(score, rank, False, _lower_bound(own, others, size), own)


def estimate(
    own: float, sampled: _Bits, size: int, *, seed: int = 0, n_resamples: int = 20
) -> Score:
    """Estimate a canary's exposure, with interval, by a skew-normal fit to log-perplexities.

    Implements Carlini et al. (2019), §4.3: exposure ≈ −log₂ ∫_{−∞}^{P(s[r])} ρ(x) dx, ρ the
    skew-normal density fitted by maximum likelihood to the P of sampled fillings.
    Differs from the paper: the fit starts from the sample's moments, and stays with them if the
    likelihood has no maximum; the result is clipped to
    log₂|R|; the interval is ours, 1.96 bootstrap standard errors over the samples, which does not
    cover a wrong tail of the distribution.

    Raises
    ------
    InvalidInputError
        Fewer than 20 samples.
    """
    if len(sampled) < 20:
        raise InvalidInputError(f"The estimate needs at least 20 samples, got {len(sampled)}.")
    most, chance = math.log2(size), mean_chance_exposure(size)
    rng = np.random.default_rng([seed, 33])
    value = _skew_normal_exposure(own, sampled, most)
    drawn = [
        _skew_normal_exposure(own, rng.choice(sampled, len(sampled)), most)
        for _ in range(n_resamples)
    ]
    half = 1.96 * float(np.std(drawn, ddof=1))
    interval = Interval(max(0.0, value - half), min(most, value + half))
    return Score(value, interval, len(sampled), chance)


def _skew_normal_exposure(own: float, sampled: _Bits, most: float) -> float:
    """Return the exposure in bits under a skew-normal fitted to sampled log-perplexities."""
    from scipy.stats import FitError, skewnorm  # slow to import

    if float(np.ptp(sampled)) < 1e-9:  # all candidates have the same log-perplexity
        return most if own < float(sampled.min()) - 1e-9 else 0.0
    # Samples may be more skewed than any skew-normal: their moments then ask for an endless shape.
    shape, place, scale = skewnorm.fit(sampled, method="MM")
    shape = min(max(float(shape), -_STEEPEST), _STEEPEST)
    with suppress(FitError):  # the likelihood has no maximum: the moments are left
        shape, place, scale = skewnorm.fit(sampled, shape, loc=place, scale=scale)
    found = -float(skewnorm.logcdf(own, shape, place, scale)) / math.log(2)
    return min(max(found, 0.0), most) if not math.isnan(found) else most


def _lower_bound(own: float, sampled: _Bits, size: int) -> float:
    """Return a lower bound of the exposure in bits by Clopper–Pearson from sampled candidates."""
    from scipy.stats import beta

    n, n_before = len(sampled), int(np.sum(sampled <= own))
    if n_before >= n:
        return 0.0
    upper = float(beta.ppf(0.975, n_before + 1, n - n_before))
    return min(-math.log2(upper), math.log2(size))
