"""SanText and SanText+: a token is replaced by any other, near ones more often.

Implements Yue et al. (2021), "Differential privacy for text analytics via natural text
sanitization": P[M(x) = y] ∝ exp(−½·ε·d(x, y)) over the vocabulary. For all x, x', y it holds that
P[M(x) = y] ≤ exp(ε·d(x, x'))·P[M(x') = y]: half of that by the numerator, half by the sum over y.
SanText+ takes some tokens to be sensitive. These are replaced as in SanText, by sensitive ones; the
others so with probability p, and are left as they are otherwise.
Differs from the papers: word pieces in the place of words, so that none is out of vocabulary. What
is sensitive is judged by the sentences that ship, never by the texts that are to be protected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from leakscope.core.corpora import bundled_sentences
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
_N_COUNTED = 5000
"""Evenly spaced bundled sentences, in which frequent tokens are counted."""


def santext_log_weights(distances: NDArray[np.float64], *, epsilon: float) -> NDArray[np.float64]:
    """Return SanText's log-weights −½·ε·d of candidates at given distances.

    Examples
    --------
    >>> santext_log_weights(np.array([[0.0, 1.5]]), epsilon=2.0).tolist()
    [[-0.0, -1.5]]
    """
    return -0.5 * epsilon * distances


@dataclass(frozen=True, kw_only=True)
class SanText:
    """Replaces every token by one drawn with P ∝ exp(−½·ε·distance) (Yue et al. 2021)."""

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(
        self, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> ExponentialPrivatizer:
        """Return the privatizer that replaces an encoder's tokens."""
        weights = partial(santext_log_weights, epsilon=check_epsilon(self.epsilon))
        return ExponentialPrivatizer(encoder, self.candidates, weights, rng=rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that encodes privatised texts."""
        return protect_texts(self, encoder)


@dataclass(frozen=True, kw_only=True)
class SanTextPlus:
    """SanText for rare tokens; frequent tokens mostly stay unchanged (Yue et al. 2021).

    The list of sensitive tokens is public. Other tokens may be released unchanged.
    """

    epsilon: float = epsilon_setting(14.0, _STEPS, "in 1/distance")
    p: float = setting(
        0.3,
        "Chance that a token that is not sensitive is replaced",
        low=1e-6,
        high=1,
        paper="as the authors run it",
    )
    sensitive: float = setting(
        0.9,
        "Share of tokens that are sensitive, the rarest first",
        low=1e-6,
        high=1,
        paper="as the authors run it",
    )
    candidates: str = setting("regular", "Tokens that may be returned", choices=CANDIDATES)
    seed: int | None = None

    def privatizer(self, encoder: WhiteBoxEncoder, rng: np.random.Generator) -> _PlusPrivatizer:
        """Return the privatizer that replaces an encoder's tokens."""
        if not 0 < self.p <= 1:
            raise InvalidInputError(f"p must lie in (0, 1], got {self.p!r}.")
        return _PlusPrivatizer(self, encoder, rng)

    def protect(self, encoder: Encoder) -> ProtectedEncoder:
        """Return an encoder that encodes privatised texts."""
        return protect_texts(self, encoder)


class _PlusPrivatizer:
    """Replaces sensitive tokens as SanText does, and the others only with probability p."""

    def __init__(
        self, mechanism: SanTextPlus, encoder: WhiteBoxEncoder, rng: np.random.Generator
    ) -> None:
        self.encoder, self._rng, self._p = encoder, rng, mechanism.p
        self._is_sensitive = sensitive_tokens(encoder, mechanism.sensitive, mechanism.candidates)
        self.ids = candidate_ids(encoder, mechanism.candidates)
        weights = partial(santext_log_weights, epsilon=check_epsilon(mechanism.epsilon))
        outputs = self.ids[self._is_sensitive[self.ids]]
        self._inner = ExponentialPrivatizer(encoder, outputs, weights, rng=rng)

    def tokens(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the replacement of each of (m,) tokens, by independent draws."""
        token_ids = np.asarray(token_ids, np.int64)
        is_drawn = self._rng.random(len(token_ids)) < self._p
        is_drawn |= self._is_sensitive[token_ids]
        changed = token_ids.copy()
        changed[is_drawn] = self._inner.tokens(token_ids[is_drawn])
        return changed

    def precompute(self, token_ids: NDArray[np.int64]) -> None:
        """Precompute what `chances` needs for these tokens; see `ExponentialPrivatizer`."""
        self._inner.precompute(token_ids)

    def chances(
        self, token_ids: NDArray[np.int64], released: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return P[y | x] of (m,) tokens x and (Y,) tokens y, shape (m, Y)."""
        token_ids = np.asarray(token_ids, np.int64)
        asked = self.ids if released is None else np.asarray(released, np.int64)
        found = self._inner.chances(token_ids, asked)
        is_open = ~self._is_sensitive[token_ids]
        found[is_open] *= self._p
        found[is_open[:, None] & (token_ids[:, None] == asked)] += 1 - self._p
        return found


def sensitive_tokens(
    encoder: WhiteBoxEncoder, share: float, candidates: str = "regular"
) -> NDArray[np.bool_]:
    """Return a mask over the encoder's tokens: True for those that are sensitive (rare).

    The rarest `share` of the candidates is sensitive, at least one, and so is every candidate that
    no bundled sentence holds and every token that is no candidate, such as [UNK]. Among equally
    rare tokens, the later ones are.
    """
    ids = candidate_ids(encoder, candidates)
    counts = _token_counts(encoder)[ids]
    n_sensitive = max(1, int(np.ceil(share * len(ids) - 1e-9)))
    frequent = np.argsort(-counts, kind="stable")[: len(ids) - n_sensitive]
    found = np.ones(len(encoder.tokens), bool)
    found[ids[frequent[counts[frequent] > 0]]] = False
    return found


_COUNTS: dict[str, NDArray[np.int64]] = {}


def _token_counts(encoder: WhiteBoxEncoder) -> NDArray[np.int64]:
    """Count each token of an encoder in bundled sentences, once per encoder and process."""
    if encoder.fingerprint not in _COUNTS:
        sentences = bundled_sentences()
        some = sentences[:: max(1, len(sentences) // _N_COUNTED)]
        ids = [i for row in encoder.token_ids(some) for i in row]
        counted = np.bincount(np.array(ids, np.int64), minlength=len(encoder.tokens))
        _COUNTS[encoder.fingerprint] = counted.astype(np.int64)
    return _COUNTS[encoder.fingerprint]
