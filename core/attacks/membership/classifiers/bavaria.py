"""The Bayesian likelihood ratio (BaVarIA): LiRA with a conjugate prior, for few shadow models.

For a sample, ψ, which is φ or 2 asinh(φ / 2), is normal over models, with a mean for those that
were trained on it, another for those that were not, and one variance, r times as large inside:

    ψ_out ~ N(μ_out, σ²),  ψ_in ~ N(μ_in, r σ²).

Prior, the same for all samples: σ² ~ InvGamma(α, β) and, given it, θ = (μ_out, μ_in) ~
N(m, σ² K⁻¹): a normal-inverse-gamma. It is conjugate, so that of n_out and n_in shadow models
with the means x̄ and the sums of squares S

    K' = K + diag(n_out, n_in / r),   θ' = K'⁻¹ (K m + (n_out x̄_out, n_in x̄_in / r)),
    α' = α + (n_out + n_in) / 2,
    β' = β + ½ [S_out + S_in / r + n_out (x̄_out − θ'_out)² + (n_in / r) (x̄_in − θ'_in)²
                + (θ' − m)ᵀ K (θ' − m)],

and ψ of a further model is Student-t with 2α' degrees of freedom, location θ'_side and squared
scale (β' / α') (c + [K'⁻¹]_side), c being 1 outside and r inside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.shadow_model_attack import (
    InOutStatistics,
    ShadowModelAttack,
    Sides,
    split_in_out,
)
from leakscope.core.specs import setting, validate_settings

_NOISE_SHARE = 0.2
"""Share of the variance that counts as noise where no sample has two models of a side (ours)."""

_LIKENESS = 0.9
"""Correlation of the two means where no sample has both sides (ours)."""

_FEWEST = 10
"""Samples from which a correlation, or how variances differ, is estimated."""

_VAGUE = 3.0
"""α where too few samples have a variance."""

_LEAST = 1e-9
_Array = NDArray[np.float64]


def log_student_t(values: _Array, freedom: _Array, location: _Array, scale2: _Array) -> _Array:
    """Return the log-density of Student's t with location and squared scale at each value."""
    norm = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - np.log(freedom * np.pi * scale2) / 2
    found: _Array = norm - (freedom + 1) / 2 * np.log1p(
        (values - location) ** 2 / (freedom * scale2)
    )
    return found


def compress_logits(phi: _Array) -> _Array:
    """Compress logits by ψ = 2 asinh(φ / 2): φ if small, about ± 2 log |φ| if large.

    Ours. The variance of φ over models grows with |φ|, which one prior for all samples cannot
    describe; that of ψ is more even.

    Examples
    --------
    >>> compress_logits(np.array([-0.01, 0.0, 20.0])).round(3).tolist()
    [-0.01, 0.0, 5.996]
    """
    found: _Array = 2 * np.arcsinh(phi / 2)
    return found


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior over a sample's IN and OUT means and variance, shared by all samples.

    Attributes
    ----------
    mean : float64 array (2,)
        m, outside first.
    precision : float64 array (2, 2)
        K, in units of 1/σ².
    ratio : float
        r.
    alpha, beta : float
        Of the inverse gamma.
    """

    mean: _Array
    precision: _Array
    ratio: float
    alpha: float
    beta: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior predictive Student's t of each sample, IN and OUT.

    Attributes
    ----------
    location : float64 array (n, 2)
        θ', outside first.
    scale2 : float64 array (n, 2)
        Squared scale of the prediction.
    freedom : float64 array (n,)
        2α'.
    """

    location: _Array
    scale2: _Array
    freedom: _Array

    def log_odds(self, psi: _Array) -> _Array:
        """Return log t(ψ | in) − log t(ψ | out) of each sample's (compressed) logit ψ, in nats."""
        outside, inside = (
            log_student_t(psi, self.freedom, self.location[:, i], self.scale2[:, i]) for i in (0, 1)
        )
        return inside - outside


def fit_prior(sides: Sides) -> Prior:
    """Fit the shared prior to all samples' IN and OUT statistics by the method of moments.

    Ours throughout: r and E[σ²] = β / (α − 1) are the pooled variances; m the means of all,
    μ_in being μ_out and the average shift; the covariance of the means what their spread over
    samples holds beyond noise; α = 2 + 1/c from c = Var[σ²] / E[σ²]², for which the variances of
    samples with ν degrees of freedom spread by c + (1 + c) · 2/ν.
    """
    inside, outside = sides.inside, sides.outside
    noise_in, noise_out = _noise_variance(inside), _noise_variance(outside)
    ratio = noise_in / noise_out
    start = float(outside.mean[outside.has].mean())
    mean = np.array([start, start + sides.shift()])
    spread = _mean_covariance(sides, noise_in, noise_out)
    alpha = _estimate_alpha(sides, ratio)
    precision = np.asarray(noise_out * np.linalg.inv(spread), dtype=np.float64)
    return Prior(mean, precision, ratio, alpha, (alpha - 1) * noise_out)


def _noise_variance(side: InOutStatistics) -> float:
    """Return the pooled within-sample variance of one side's logits, or a fallback; above 0."""
    pooled = side.variance()
    if np.isnan(pooled):
        pooled = _NOISE_SHARE * float(side.values.var())
    return max(pooled, _LEAST)


def _mean_covariance(sides: Sides, noise_in: float, noise_out: float) -> _Array:
    """Return the 2 × 2 covariance of the OUT and IN means over samples, corrected for noise."""
    variances = []
    for side, noise in ((sides.outside, noise_out), (sides.inside, noise_in)):
        whole = float(side.mean[side.has].var())
        variances.append(max(whole - noise * float((1 / side.count[side.has]).mean()), 0.0))
    both = sides.both
    if both.sum() > _FEWEST:
        shared = float(np.cov(sides.outside.mean[both], sides.inside.mean[both])[0, 1])
    else:
        shared = _LIKENESS * float(np.sqrt(variances[0] * variances[1]))
    values, vectors = np.linalg.eigh([[variances[0], shared], [shared, variances[1]]])
    found: _Array = (vectors * np.maximum(values, 1e-3 * noise_out)) @ vectors.T
    return found


def _estimate_alpha(sides: Sides, ratio: float) -> float:
    """Estimate α of the inverse-gamma prior from the spread of the samples' variances."""
    degrees = np.maximum(sides.inside.count - 1, 0) + np.maximum(sides.outside.count - 1, 0)
    known = degrees > 0
    if known.sum() <= _FEWEST:
        return _VAGUE
    own = (sides.inside.squares / ratio + sides.outside.squares)[known] / degrees[known]
    if own.mean() <= _LEAST:
        return _VAGUE
    drawn = float((2 / degrees[known]).mean())
    spread = (float(own.var() / own.mean() ** 2) - drawn) / (1 + drawn)
    return 2 + 1 / max(spread, 1e-3)


def compute_posterior(prior: Prior, sides: Sides) -> Posterior:
    """Update the prior by each sample's IN and OUT statistics (equations: module docstring)."""
    outside, inside = sides.outside, sides.inside
    weight = np.stack([outside.count, inside.count / prior.ratio], axis=1)
    means = np.stack([outside.mean, inside.mean], axis=1)
    precision = prior.precision + weight[:, :, None] * np.eye(2)
    pulled = prior.precision @ prior.mean + weight * means
    solved = np.linalg.solve(precision, pulled[:, :, None])[:, :, 0]
    location = np.asarray(solved, dtype=np.float64)
    off = location - prior.mean
    squares = outside.squares + inside.squares / prior.ratio
    squares = squares + (weight * (means - location) ** 2).sum(axis=1)
    squares = squares + np.einsum("ni,ij,nj->n", off, prior.precision, off)
    alpha = prior.alpha + (outside.count + inside.count) / 2
    beta = prior.beta + squares / 2
    doubt = np.linalg.inv(precision)[:, [0, 1], [0, 1]] + np.array([1.0, prior.ratio])
    return Posterior(location, (beta / alpha)[:, None] * doubt, 2 * alpha)


@dataclass
class BaVarIA(ShadowModelAttack):
    """A likelihood-ratio attack with normal-inverse-gamma priors, after Brännvall (2026).

    We had a description of the paper, not its text: Student-t predictions from
    normal-inverse-gamma priors in place of LiRA's normals. Ours: one variance and one prior for
    both sides, so that one side informs the other where that has few models or none; how the prior
    is set (`fit_prior`); and ψ in place of φ (`compress_logits`). The gain of each:
    docs/decisions/0019-one-prior-for-both-sides.md.
    """

    scale: str = setting("asinh", "on which the noise is even", choices=("asinh", "logit"))

    def fit(self, shadows: Shadows) -> BaVarIA:
        """Fit the prior, and each sample's posterior, to the outputs of shadow models.

        Raises
        ------
        InvalidInputError
            They were trained on all samples, or on none.
        """
        validate_settings(self)
        psi = self._scale_logits(self.logits_of(shadows))
        sides = split_in_out(psi, shadows.members, shadows.labels)
        sides.shift()
        self.agreed_ = self.unanimous(psi)
        self.posterior_ = compute_posterior(fit_prior(sides), sides)
        self.labels_ = shadows.labels
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return each target sample's log-likelihood ratio in nats; above 0, likelier a member.

        Ours: it is 0 where the target's output equals that of every shadow model. Such an output is
        no evidence, and the widths of the two predictions would reveal how many models hold the
        sample.

        Raises
        ------
        NotFittedError, InvalidInputError
            As `ShadowModelAttack.check`.
        """
        psi = self._scale_logits(self.logit_of(target))
        return np.where(psi == self.agreed_, 0.0, self.posterior_.log_odds(psi))

    def _scale_logits(self, phi: _Array) -> _Array:
        """Return logits on the scale chosen in the settings: compressed or unchanged."""
        return compress_logits(phi) if self.scale == "asinh" else phi
