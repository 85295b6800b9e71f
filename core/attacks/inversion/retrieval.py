"""The retrieval baseline: answer the words of the most similar auxiliary sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.attacks import fitted
from leakscope.core.attacks.inversion.decision import best_counts
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.ranges import Uniform
from leakscope.core.results import RecoveredWord, Recovery
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, Vocabulary, check_texts
from leakscope.core.vectors import dot, is_sparse, n_rows, sparse_from_parts, sparse_parts, unit


@dataclass
class RetrievalAttack:
    """A baseline that answers the words shared by the nearest auxiliary sentences.

    Neighbours by cosine, weighted by exp(cosine / temperature); a word's score is its share of
    the weight. Nothing is learned: it shows what leaks to anyone who owns similar texts.
    """

    n_neighbors: int = setting(
        200,
        "Number of auxiliary sentences that vote",
        low=1,
        high=5000,
        at="answer",
        search=Uniform(5, 1000, is_log=True),
    )
    temperature: float = setting(
        0.05,
        "Weight of near sentences over distant ones",
        low=1e-3,
        at="answer",
        search=Uniform(0.005, 1.0, is_log=True),
    )
    vocabulary_size: int = setting(20_000, "Vocabulary size", low=10)
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
        """Encode the auxiliary texts unless vectors are given; store vectors and words."""
        texts = check_texts(texts)
        stop_words: frozenset[str] = frozenset() if self.keep_stop_words else STOP_WORDS
        vocabulary = Vocabulary.count(texts, size=self.vocabulary_size, stop_words=stop_words)
        fitted.bind(self, encoder, vocabulary)
        if vectors is None:
            vectors = encoder.encode(texts, on_progress)
        checked = fitted.check_vectors(vectors, encoder.dimension, len(texts), reads_sparse=True)
        self.vectors_ = unit(checked)
        self.words_ = self.vocabulary_.matrix(texts)
        return self

    def open(self, encoder: Encoder, on_progress: OnProgress = no_progress) -> Self:
        """Encode the bundled corpora as the auxiliary pool (cached on disk), instead of fitting."""
        from leakscope.core.corpora import bundled_sentences
        from leakscope.core.encoders.cache import CachedEncoder

        self.fit(CachedEncoder(encoder), bundled_sentences(), on_progress=on_progress)
        return self

    def invert(
        self, encoder: Encoder, vectors: Vectors, on_progress: OnProgress = no_progress
    ) -> list[Recovery]:
        """Return an answer for each vector: words with most of its nearest sentences' weight."""
        vectors = unit(fitted.check_fitted(self, encoder, vectors))
        recoveries: list[Recovery] = []
        n = n_rows(vectors)
        for start in range(0, n, 64):
            recoveries += self._vote(vectors[start : start + 64])
            on_progress(len(recoveries) / n, "Looking up the nearest sentences")
        return recoveries

    def _vote(self, vectors: Vectors) -> list[Recovery]:
        """Let each vector's nearest sentences vote on words by weight; return the answers."""
        cosine, n = dot(vectors, self.vectors_), n_rows(vectors)
        k = min(self.n_neighbors, cosine.shape[1])
        near = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
        similarity = np.take_along_axis(cosine, near, axis=1)
        weight = np.exp((similarity - similarity.max(1, keepdims=True)) / self.temperature)
        weight /= weight.sum(1, keepdims=True)
        rows = np.repeat(np.arange(n), k)
        votes = sparse.csr_array((weight.ravel(), (rows, near.ravel())), shape=(n, cosine.shape[1]))
        return [self._answer(share) for share in (votes @ self.words_).toarray()]

    def _answer(self, share: NDArray[np.float32]) -> Recovery:
        """Convert word scores to an answer whose length maximises the expected F1."""
        ranked = np.argsort(-share, kind="stable")[:100]
        count = int(best_counts(share[ranked][None], share.sum()[None])[0])
        words = self.vocabulary_.words
        listed = tuple(RecoveredWord(words[w], float(share[w])) for w in ranked if share[w] > 0)
        return Recovery(listed[:count], runners_up=listed[count : count + 25])

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what to store: the pool's vectors (dense in float16) and words; the vocabulary."""
        pool = (
            {**sparse_parts(self.vectors_), "shape": np.asarray(self.vectors_.shape)}
            if is_sparse(self.vectors_)
            else {"vectors": self.vectors_.astype(np.float16)}
        )
        arrays = {
            **pool,
            "indptr": self.words_.indptr.astype(np.int64),
            "indices": self.words_.indices.astype(np.int32),
        }
        return arrays, fitted.bound_meta(self)

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore the fitted attack from the arrays and metadata that `state` returned."""
        fitted.rebind(self, meta)
        fitted.check_shapes(self, arrays, {"vectors": "n d"})
        if "vectors" in arrays:
            self.vectors_ = np.asarray(arrays["vectors"], dtype=np.float32)
        else:
            self.vectors_ = sparse_from_parts(arrays, int(arrays["shape"][1]))
        ones = np.ones(len(arrays["indices"]), dtype=np.float32)
        words = {"data": ones, "columns": arrays["indices"], "starts": arrays["indptr"]}
        self.words_ = sparse_from_parts(words, len(self.vocabulary_))
        if n_rows(self.words_) != n_rows(self.vectors_):
            raise ValueError("as many sentences as vectors")
        return self
