"""The zero-shot word probe: answer the words whose own encodings are nearest to the vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks import fitted
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, Vocabulary
from leakscope.core.vectors import dot, is_sparse, n_rows, sparse_from_parts, sparse_parts, unit


def encode_words(
    encoder: Encoder,
    vocabulary: Vocabulary,
    on_progress: OnProgress = no_progress,
    *,
    centre: Vectors | None = None,
) -> Vectors:
    """Encode every vocabulary word alone and subtract their mean: Φ(w) − μ, float32 (|V|, d).

    A zero-shot attacker needs nothing else, and a learned one starts from it. μ is `centre`, or
    the mean Φ(w): a direction that is common to all short texts and says nothing about the word.
    Sparse encodings have none, and stay as they are.
    """
    vectors = encoder.encode(list(vocabulary.words), on_progress)
    if is_sparse(vectors):
        return vectors
    centred: Vectors = np.asarray(
        vectors - (vectors.mean(0) if centre is None else centre), dtype=np.float32
    )
    return centred


N_FOR_MEAN = 1000
"""The most texts whose mean vector is subtracted."""


@dataclass
class ProbeAttack:
    """An attack that encodes every vocabulary word alone and answers those nearest to the vector.

    Answers the words of the largest cosine between Φ(w) − μ and e − μ. Needs a list of words, one
    query a word, once, and texts for μ, the mean of their vectors; without texts e stays as it is
    and μ is the mean Φ(w). A baseline of ours for what an attacker has within a minute.
    """

    n_words: int = setting(
        10, "Number of words to answer", low=1, high=100, at="answer", search=Uniform(3, 30)
    )
    vocabulary_size: int = setting(20_000, "Number of words to encode", low=10)
    keep_stop_words: bool = setting(False, "Count stop words as words to find (SR20)")

    reads_sparse = True

    vocabulary_: Vocabulary = field(init=False, repr=False, compare=False)

    def fit(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        vectors: Vectors | None = None,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Count the vocabulary in the auxiliary texts and encode each of its words.

        μ is taken over N_FOR_MEAN of the texts, evenly spread. Of averages of word vectors it is
        nearly all of each vector.
        """
        if vectors is not None:
            vectors = fitted.check_vectors(
                vectors, encoder.dimension, len(texts), reads_sparse=True
            )
        stop_words: frozenset[str] = frozenset() if self.keep_stop_words else STOP_WORDS
        vocabulary = Vocabulary.count(texts, size=self.vocabulary_size, stop_words=stop_words)
        rows = np.linspace(0, len(texts) - 1, min(len(texts), N_FOR_MEAN)).astype(np.intp)
        known = encoder.encode([texts[i] for i in rows]) if vectors is None else vectors[rows]
        centre = None if is_sparse(known) else known.mean(0, dtype=np.float32)
        return self.fit_vocabulary(encoder, vocabulary, on_progress, centre=centre)

    def fit_vocabulary(
        self,
        encoder: Encoder,
        vocabulary: Vocabulary,
        on_progress: OnProgress = no_progress,
        *,
        centre: Vectors | None = None,
    ) -> Self:
        """Encode a given vocabulary's words; `centre` is the mean text vector μ (d,), if known."""
        fitted.bind(self, encoder, vocabulary)
        self.centre_ = centre
        self.directions_ = unit(encode_words(encoder, vocabulary, on_progress, centre=centre))
        return self

    def open(self, encoder: Encoder, on_progress: OnProgress = no_progress) -> Self:
        """Load the vocabulary of the shipped attacks and encode its words, instead of fitting."""
        from leakscope.core.attacks.inversion.shipped import shipped_vocabulary
        from leakscope.core.encoders.cache import CachedEncoder

        return self.fit_vocabulary(CachedEncoder(encoder), shipped_vocabulary(encoder), on_progress)

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: the `n_words` nearest words.

        Of a sparse vector, all words at a cosine above 0: in a bag of words they are there.
        """
        vectors = fitted.check_fitted(self, encoder, vectors)
        vectors = unit(vectors if self.centre_ is None else vectors - self.centre_)
        recoveries: list[Recovery] = []
        for start in range(0, n_rows(vectors), 256):
            cosine = dot(vectors[start : start + 256], self.directions_)
            recoveries += [self._answer(row, is_sparse(vectors)) for row in cosine]
            on_progress(len(recoveries) / n_rows(vectors), "Comparing with each word")
        return recoveries

    def _answer(self, cosine: NDArray[np.float32], answers_all: bool) -> Recovery:
        """Build one vector's answer from its cosines to all words: `n_words`, or all above 0."""
        count = int((cosine > 0).sum()) if answers_all else self.n_words
        top = np.argsort(-cosine, kind="stable")[: count + 25]
        listed = tuple(RecoveredWord(self.vocabulary_.words[w], float(cosine[w])) for w in top)
        return Recovery(listed[:count], runners_up=listed[count:])

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the word directions (dense in float16); metadata with the words."""
        if is_sparse(self.directions_):
            shape = np.asarray(self.directions_.shape)
            return {**sparse_parts(self.directions_), "shape": shape}, fitted.bound_meta(self)
        centre = {} if self.centre_ is None else {"centre": self.centre_}
        return {"directions": self.directions_.astype(np.float16), **centre}, fitted.bound_meta(
            self
        )

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        fitted.rebind(self, meta)
        fitted.check_shapes(self, arrays, {"centre": "d", "directions": "V d"})
        self.centre_ = arrays.get("centre")
        if "directions" in arrays:
            self.directions_ = np.asarray(arrays["directions"], dtype=np.float32)
        else:
            self.directions_ = sparse_from_parts(arrays, int(arrays["shape"][1]))
        return self
