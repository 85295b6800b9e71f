"""LiRA: the likelihood ratio of a logit under models trained on the sample and models not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.shadow_model_attack import (
    InOutStatistics,
    ShadowModelAttack,
    Sides,
    split_in_out,
)
from leakscope.core.specs import setting

FEWEST_FOR_OWN = 32
"""The fewest models of a side with which each sample has its own variance."""

_LEAST_DEVIATION = 1e-6
"""The least standard deviation, for models that agree exactly."""

_Array = NDArray[np.float64]


def log_normal(values: _Array, mean: _Array, deviation: _Array) -> _Array:
    """Return the log-density of the normal distribution at each value."""
    scaled = (values - mean) / deviation
    found: _Array = -0.5 * scaled**2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    return found


def deviation(side: InOutStatistics) -> _Array:
    """Return each sample's standard deviation over the models of one side: its own, or pooled.

    From 32 models (the median over samples) each sample has its own, with n − 1 in the
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
    """Return each sample's online score log N(φ; μ_in, σ_in) − log N(φ; μ_out, σ_out), in nats.

    Implements Carlini et al. (2022), Algorithm 1. Differs from the paper: where no shadow model
    of one side exists for a sample, its mean is the other side's plus or minus the average shift.
    """
    inside = log_normal(phi, sides.inside_mean(), deviation(sides.inside))
    return inside - log_normal(phi, sides.outside_mean(), deviation(sides.outside))


def offline(phi: _Array, sides: Sides) -> _Array:
    """Return each sample's offline score −log P[Z ≥ φ] for Z ~ N(μ_out, σ_out), in nats.

    Implements the offline attack of Carlini et al. (2022), Λ = 1 − P[Z > φ], as −log (1 − Λ): the
    same order, without ties where Λ rounds to 1. Differs from the paper: as `online`.
    """
    scaled = (phi - sides.outside_mean()) / deviation(sides.outside)
    found: _Array = -log_ndtr(-scaled)
    return found


@dataclass
class LiRA(ShadowModelAttack):
    """The likelihood ratio attack of Carlini et al. (2022)."""

    is_online: bool = setting(True, "also use models trained on the sample")

    def fit(self, shadows: Shadows) -> LiRA:
        """Compute IN and OUT statistics of each sample's logit from shadow models.

        Raises
        ------
        InvalidInputError
            They were trained on all samples or, online, on none.
        """
        phi = self.logits_of(shadows)
        sides = split_in_out(phi, shadows.members, shadows.labels)
        sides.outside_mean()
        if self.is_online:
            sides.inside_mean()
        self.labels_, self.sides_, self.agreed_ = shadows.labels, sides, self.unanimous(phi)
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return each target sample's score in nats; online, above 0 if a member is likelier.

        Ours: where the target's logit equals that of every shadow model, there is no evidence. The
        score is then 0 online, and −log ½ offline.

        Raises
        ------
        NotFittedError, InvalidInputError
            Not fitted, or the target's samples are not those of the shadow models.
        """
        phi = self.logit_of(target)
        found = (online if self.is_online else offline)(phi, self.sides_)
        return np.where(phi == self.agreed_, 0.0 if self.is_online else np.log(2.0), found)
