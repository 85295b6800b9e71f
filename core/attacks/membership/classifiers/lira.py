"""The likelihood ratio attack: whether φ is like that of models that saw the sample, or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from core.attacks.membership.classifiers.aligned import Aligned
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.sides import Side, Sides, sides_of
from core.specs import setting

__all__ = ["FEWEST_FOR_OWN", "LiRA", "deviation", "log_normal", "offline", "online"]

FEWEST_FOR_OWN = 32
"""Models of a side from which on a sample has a variance of its own."""

_LEAST_DEVIATION = 1e-6
"""Where all models agree to the last digit."""

_Array = NDArray[np.float64]


def log_normal(values: _Array, mean: _Array, deviation: _Array) -> _Array:
    """Return the logarithm of the normal density."""
    scaled = (values - mean) / deviation
    found: _Array = -0.5 * scaled**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    return found


def deviation(side: Side) -> _Array:
    """Return the standard deviation of a side for each sample.

    From 32 models on (the median over samples) each sample has its own, with n − 1 in the
    denominator. Below, all share one, pooled within samples: σ² = Σ_i Σ_k (φ_ik − μ_i)² /
    Σ_i (n_i − 1), as one of two models is no estimate. Where no sample has two, that of all φ.
    Carlini et al. (2022) share a variance, too, where models are few. Differs from them: it is
    taken within samples, so that their own differences do not count as noise.
    """
    pooled = side.variance()
    if np.isnan(pooled):
        pooled = float(side.values.var()) if len(side.values) else 1.0
    variance = np.full(len(side.count), pooled)
    if np.median(side.count) >= FEWEST_FOR_OWN:
        own = side.squares / np.maximum(side.count - 1, 1)
        variance = np.where(side.count > 1, own, pooled)
    return np.sqrt(np.maximum(variance, _LEAST_DEVIATION**2))


def online(phi: _Array, sides: Sides) -> _Array:
    """Return log N(φ; μ_in, σ_in) − log N(φ; μ_out, σ_out), a logarithm of odds in nats.

    Implements Carlini et al. (2022), Algorithm 1. Differs from the paper: where no shadow model
    of one side exists for a sample, its mean is the other side's, shifted as on average.
    """
    inside = log_normal(phi, sides.inside_mean(), deviation(sides.inside))
    return inside - log_normal(phi, sides.outside_mean(), deviation(sides.outside))


def offline(phi: _Array, sides: Sides) -> _Array:
    """Return −log P[Z ≥ φ] in nats, Z ~ N(μ_out, σ_out): how seldom a stranger does so well.

    Implements the offline attack of Carlini et al. (2022), Λ = 1 − P[Z > φ], as −log (1 − Λ): the
    same order, which a share that rounds to 1 would lose. Differs from the paper: as `online`.
    """
    scaled = (phi - sides.outside_mean()) / deviation(sides.outside)
    found: _Array = -log_ndtr(-scaled)
    return found


@dataclass
class LiRA(Aligned):
    """The likelihood ratio attack of Carlini et al. (2022)."""

    is_online: bool = setting(True, "ask models that were trained on the sample, too")

    def fit(self, shadows: Shadows) -> LiRA:
        """Take what the shadow models say of each sample.

        Raises
        ------
        InvalidInputError
            They were trained on all samples or, online, on none.
        """
        phi = self.logits_of(shadows)
        sides = sides_of(phi, shadows.members, shadows.labels)
        sides.outside_mean()
        if self.is_online:
            sides.inside_mean()
        self.labels_, self.sides_, self.agreed_ = shadows.labels, sides, self.agreed(phi)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the score of each sample, in nats; online, above 0 where a member is likelier.

        Ours: where the target says exactly what every shadow model says, nothing is learned. The
        score is then 0 online, and −log ½ offline.

        Raises
        ------
        NotFittedError, InvalidInputError
            Not fitted, or the target's samples are not those of the shadow models.
        """
        phi = self.logit_of(target)
        found = (online if self.is_online else offline)(phi, self.sides_)
        return np.where(phi == self.agreed_, 0.0 if self.is_online else np.log(2.0), found)
