"""TEM: like SanText within a distance γ; all tokens farther away share one chance.

Implements Carvalho et al. (2023), "TEM: high utility metric differential privacy on text". The
candidates within γ of x compete with the score −d(x, y), all others together as one candidate ⊥
with the score −γ + (2/ε)·ln n_others; Gumbel noise of scale 2/ε is added to each, the greatest
wins, and where that is ⊥, one of the others is drawn evenly. γ = (2/ε)·ln((1−β)(|V|−1)/β), so that
with probability 1−β at least, the replacement lies within γ.
Differs from the paper: it is drawn in one step. The greatest of n_others Gumbel variables of
location −γ is one of location −γ + (2/ε)·ln n_others, and each is the greatest equally often, so
that the above is P[M(x) = y] ∝ exp(−½·ε·min(d(x, y), γ)) exactly.

The guarantee: min(d, γ) differs between x and x' by min(d(x, x'), γ) at most, hence
P[M(x) = y] ≤ exp(ε·min(d(x, x'), γ))·P[M(x') = y]: the paper's bound, and for far tokens a better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from leakscope.core.defences.metric_dp.exponential_mechanism import (
    ExponentialPrivatizer,
    check_epsilon,
    epsilon_setting,
)
from leakscope.core.defences.metric_dp.texts import protect_texts
from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.specs import setting

_STEPS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 25.0, 30.0, 40.0)


def tem_gamma(epsilon: float, beta: float, n_tokens: int) -> float:
    """Return TEM's threshold γ = (2/ε)·ln((1−β)(|V|−1)/β), at least 0.

    Examples
    --------
    >>> round(tem_gamma(2.0, 0.5, 11), 6)  # ln(10)
    2.302585
    """
    if not 0 < beta < 1:
        raise InvalidInputError(f"beta must lie between 0 and 1, got {beta!r}.")
    inner = (1 - beta) * (n_tokens - 1) / beta
    return max(0.0, 2 / epsilon * math.log(inner)) if inner > 0 else 0.0


def tem_log_weights(
    distances: NDArray[np.float64], *, epsilon: float, gamma: float
) -> NDArray[np.float64]:
    """Return TEM's log-weights −½·ε·min(d, γ) of candidates at given distances.

    Examples
    --------
    >>> tem_log_weights(np.array([[0.0, 1.5, 9.0]]), epsilon=2.0, gamma=3.0).tolist()
    [[-0.0, -1.5, -3.0]]
    """
    return -0.5 * epsilon * np.minimum(distances, gamma)


@dataclass(frozen=True, kw_only=True)
class TEM:
    """Replaces every token by one drawn with P ∝ exp(−½·ε·min(distance, γ)) (Carvalho 2023)."""

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    beta: float = setting(
        0.001,
        "Chance that a replacement lies beyond γ",
        low=1e-12,
        high=0.999,
        paper="Carvalho et al. (2023)",
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def gamma(self, n_tokens: int) -> float:
        """Return the threshold γ for a number of candidate tokens."""
        return tem_gamma(check_epsilon(self.epsilon), self.beta, n_tokens)

    def privatizer(
        self, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> ExponentialPrivatizer:
        """Return the privatizer that replaces an encoder's tokens."""
        ids = candidate_ids(encoder, self.candidates)
        gamma = self.gamma(len(ids))
        weights = partial(tem_log_weights, epsilon=self.epsilon, gamma=gamma)
        return ExponentialPrivatizer(encoder, ids, weights, rng=rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that encodes privatised texts."""
        return protect_texts(self, encoder)
