"""The word classifier's evidence for a decoder: likely words as tokens, with log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from leakscope.core.attacks.inversion.reconstruct.tokens import UNKNOWN, Lexicon
from leakscope.core.protocols import Vectors

N_EVIDENCE_WORDS = 32
"""The most words of evidence for each vector."""

_MOST = 12.0


@dataclass(frozen=True)
class TokenEvidence:
    """Likely words of n vectors as lexicon tokens, with their evidence in nats."""

    tokens: NDArray[np.int64]
    """Shape (n, k), the likeliest first; padded with the unknown token."""
    nats: NDArray[np.float32]
    """Log-odds that the text holds each token, less its prior log-odds; at least 0."""

    @classmethod
    def empty(cls, n: int) -> TokenEvidence:
        """Return no evidence for n vectors."""
        return cls(np.full((n, 1), UNKNOWN, np.int64), np.zeros((n, 1), np.float32))


class ClassifierEvidence:
    """Computes a word classifier's evidence as tokens that a decoder knows."""

    def __init__(self, base: ProbeMLCAttack, lexicon: Lexicon, size: int) -> None:
        places = lexicon.places(base.vocabulary_.words)
        self._model: Any = base.model_
        self._known = np.flatnonzero((places >= 0) & (places < size))
        self._tokens = places[self._known]
        self._usual = base.vocabulary_.log_odds[self._known].astype(np.float32)

    def of(self, vectors: Vectors) -> TokenEvidence:
        """Compute the evidence of vectors (n, d).

        log [p / (1 − p)] − log [q / (1 − q)], where p is the classifier's probability that the text
        holds a word and q the share of texts that do: what the vector adds to a language model.
        """
        if not len(self._known):
            return TokenEvidence.empty(len(vectors))
        likely = self._model.probabilities(vectors)[:, self._known]
        n = min(N_EVIDENCE_WORDS, likely.shape[1])
        top = np.argpartition(-likely, n - 1, axis=1)[:, :n]
        believed = np.take_along_axis(likely, top, 1)
        order = np.argsort(-believed, axis=1, kind="stable")
        top, believed = np.take_along_axis(top, order, 1), np.take_along_axis(believed, order, 1)
        p = np.clip(believed, 1e-6, 1 - 1e-6)
        nats = np.log(p / (1 - p)) - self._usual[top]
        return TokenEvidence(self._tokens[top], np.clip(nats, 0.0, _MOST).astype(np.float32))
