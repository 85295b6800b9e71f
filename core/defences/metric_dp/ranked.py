"""Text-to-text privatisation that releases a candidate of a random rank, not always the nearest.

After Asghar et al. (2024), "d_χ-privacy for text and the curse of dimensionality"
(arXiv 2411.13784): in many dimensions noise returns either the very token or one unrelated to it,
hardly ever a near one. Their remedy is a post-processing: all candidates are ranked by their
distance to the noisy vector, and that of rank i = 0, 1, … is released with probability
∝ exp(−c·ε·i). As neither rank nor draw depends on the input, the noise's d_χ-privacy guarantee (Qu
et al. 2021, Eq. 2) still holds.
Differs from the paper: η is its ε, and c has a default of our own. The form of the probability is
that of code which its authors published with later work: docs/decisions/0024 says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from leakscope.core.defences.metric_dp.mechanisms import eta_setting
from leakscope.core.defences.metric_dp.neighbours.nearest import NearestCandidate
from leakscope.core.defences.metric_dp.noise import check_eta, draw_noise
from leakscope.core.defences.metric_dp.texts import protect_texts
from leakscope.core.defences.protected import ProtectedEncoder
from leakscope.core.encoders.white_box import token_table
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Encoder, WhiteBoxEncoder
from leakscope.core.specs import setting

_BLOCK = 512


def draw_ranks(n: int, fall: float, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw n independent ranks from 0 to most − 1 with P[i] ∝ exp(−fall·i).

    Drawn by the inverse of the cumulative distribution, (1 − exp(−fall·(i+1)))/(1 −
    exp(−fall·most)).
    """
    drawn = rng.random(n)
    if fall * most < 1e-9:
        return (drawn * most).astype(np.int64)
    ranks = np.log1p(drawn * np.expm1(-fall * most)) / -fall
    return np.minimum(ranks, most - 1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class TextToTextRanked:
    """Replaces every token by one of those nearest to its noisy vector (Asghar et al. 2024)."""

    eta: float = eta_setting()
    c: float = setting(
        0.005,
        "How fast the chance of a rank falls, times η; 0: all ranks are equally likely",
        low=0,
        high=1e6,
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _RankedPrivatizer:
        """Return the privatizer that replaces an encoder's tokens."""
        check_eta(self.eta)
        if not self.c >= 0:
            raise InvalidInputError(f"c must be at least 0, got {self.c!r}.")
        return _RankedPrivatizer(self, encoder, rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that encodes privatised texts."""
        return protect_texts(self, encoder)


class _RankedPrivatizer:
    """Adds noise to each token's vector and releases the candidate at a random rank."""

    def __init__(
        self, mechanism: TextToTextRanked, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._mechanism = encoder, rng, mechanism
        self.ids = candidate_ids(encoder, mechanism.candidates)
        self._vectors = token_table(encoder)
        self._nearest = NearestCandidate(
            self._vectors[self.ids], device=str(encoder.token_vectors.device)
        )

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the replacement of each of (m,) tokens, each with its own noise and rank."""
        token_ids = np.asarray(token_ids, np.int64)
        n, eta = len(token_ids), self._mechanism.eta
        fall = self._mechanism.c * eta
        ranks = draw_ranks(n, fall, len(self.ids), self._rng)
        changed = np.empty(n, np.int64)
        order = np.argsort(ranks, kind="stable")  # like ranks need lists of like length
        for start in range(0, n, _BLOCK):
            places = order[start : start + _BLOCK]
            own = self._vectors[token_ids[places]]
            noise = draw_noise(len(places), own.shape[1], eta, rng=self._rng)
            changed[places] = self._nearest.of_ranks(own + noise, ranks[places])
        return self.ids[changed]
