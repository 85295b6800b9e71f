"""What the classifier underneath tells a decoder: the words that it believes in, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.classifiers.probe_mlc import ProbeMLCAttack
from core.attacks.inversion.reconstruct.tokens import UNKNOWN, Lexicon
from core.protocols import Vectors

__all__ = ["Evidence", "Told"]

N_TOLD = 32
"""Words that are told of each vector."""

_MOST = 12.0


@dataclass(frozen=True)
class Told:
    """The words that a classifier reads from n vectors, as tokens, likeliest first."""

    tokens: NDArray[np.int64]
    """Shape (n, k); where a classifier has fewer words, the rest is the unknown token."""
    nats: NDArray[np.float32]
    """Log-odds that the text holds each, less the log-odds of any text; not below 0."""

    @classmethod
    def nothing(cls, n: int) -> Told:
        """Return what is told of n vectors where nobody tells."""
        return cls(np.full((n, 1), UNKNOWN, np.int64), np.zeros((n, 1), np.float32))


class Evidence:
    """A classifier's words as tokens of a lexicon, of which a decoder knows the first `size`."""

    def __init__(self, base: ProbeMLCAttack, lexicon: Lexicon, size: int) -> None:
        places = lexicon.places(base.vocabulary_.words)
        self._model: Any = base.model_
        self._known = np.flatnonzero((places >= 0) & (places < size))
        self._tokens = places[self._known]
        self._usual = base.vocabulary_.log_odds[self._known].astype(np.float32)

    def of(self, vectors: Vectors) -> Told:
        """Return what is told of (n, d) vectors.

        log [p / (1 − p)] − log [q / (1 − q)], where p is the classifier's belief that the text
        holds a word and q the share of texts that do: what the vector adds to what a language
        model expects anyway.
        """
        if not len(self._known):
            return Told.nothing(len(vectors))
        likely = self._model.probabilities(vectors)[:, self._known]
        n = min(N_TOLD, likely.shape[1])
        top = np.argpartition(-likely, n - 1, axis=1)[:, :n]
        believed = np.take_along_axis(likely, top, 1)
        order = np.argsort(-believed, axis=1, kind="stable")
        top, believed = np.take_along_axis(top, order, 1), np.take_along_axis(believed, order, 1)
        p = np.clip(believed, 1e-6, 1 - 1e-6)
        nats = np.log(p / (1 - p)) - self._usual[top]
        return Told(self._tokens[top], np.clip(nats, 0.0, _MOST).astype(np.float32))
