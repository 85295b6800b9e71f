"""Text to text whose answer is one of the nearest to the noisy vector, not always the nearest.

After Asghar et al. (2024), "d_χ-privacy for text and the curse of dimensionality"
(arXiv 2411.13784): in many dimensions noise returns either the very token or one unrelated to it,
hardly ever a near one. Their remedy is a post-processing: all candidates are ranked by their
distance to the noisy vector, and that of rank i = 0, 1, … is released with probability
∝ exp(−c·ε·i). As neither rank nor draw looks at the input, what d_χ-privacy promises for the noise
(Qu et al. 2021, Eq. 2) still holds.
Differs from the paper: η is its ε, and c has a default of our own. The form of the probability is
that of code which its authors published with later work: docs/decisions/0024 says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.defences.metric_dp.candidates import CANDIDATES, candidate_ids
from core.defences.metric_dp.mechanisms import eta_setting
from core.defences.metric_dp.nearest import NearestCandidate
from core.defences.metric_dp.noise import check_eta, draw_noise
from core.defences.metric_dp.texts import protect_texts
from core.defences.protected import ProtectedEncoder
from core.encoders.white_box import token_table
from core.errors import InvalidInputError
from core.protocols import Encoder, WhiteBoxEncoder
from core.specs import setting

__all__ = ["TextToTextRanked", "draw_ranks"]

_BLOCK = 512


def draw_ranks(n: int, fall: float, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return n independent ranks from 0 to most − 1, P[i] ∝ exp(−fall·i).

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
        0.005, "How fast the chance of a rank falls, times η; 0 gives all the same", low=0, high=1e6
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _RankedPrivatizer:
        """Return what changes the tokens of an encoder."""
        check_eta(self.eta)
        if not self.c >= 0:
            raise InvalidInputError(f"c must be at least 0, got {self.c!r}.")
        return _RankedPrivatizer(self, encoder, rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return the encoder of privatised texts."""
        return protect_texts(self, encoder)


class _RankedPrivatizer:
    """Moves tokens by noise and releases the candidate of a drawn rank."""

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
        """Return what each of (m,) tokens becomes, under noise and a rank of its own."""
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
