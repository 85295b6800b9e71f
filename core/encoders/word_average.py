"""Sentences as the mean of word vectors that are trained here (SR20 §6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from gensim.models import FastText, Word2Vec
from gensim.models.fasttext_inner import compute_ngrams_bytes, ft_hash_bytes
from numpy.typing import NDArray
from scipy import sparse

from core.encoders.bag_of_words import pack_words, unpack_words
from core.encoders.fitted import check_ready, fingerprint_of, training_texts
from core.encoders.gensim_training import stable_hash, train_gensim
from core.protocols import OnProgress, Vectors, no_progress
from core.specs import setting
from core.text import check_texts, words

__all__ = ["FastTextEncoder", "Word2VecEncoder", "WordAverage"]


class WordAverage:
    """What encoders share that answer the mean of word vectors.

    A text's words count as often as they stand; words without a vector are skipped.
    """

    fingerprint: str | None
    words_: list[str]
    vectors_: NDArray[np.float32]

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Vectors:
        """Return float32 vectors (n, d); 0 where no word is known."""
        check_ready(self)
        checked = check_texts(texts)
        columns: list[int] = []
        ends = [0]
        index, table = dict(self._index), [self.vectors_]
        for text in checked:
            for word in words(text):
                if word not in index:
                    vector = self._vector_of(word)
                    index[word] = -1 if vector is None else len(self.words_) + len(table) - 1
                    table += [] if vector is None else [vector[None]]
                if index[word] >= 0:
                    columns.append(index[word])
            ends.append(len(columns))
        return _means(columns, ends, np.concatenate(table))

    def _vector_of(self, word: str) -> NDArray[np.float32] | None:
        """Return the vector of a word outside the list, or None."""
        return None

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the words and their vectors."""
        return {"words": pack_words(self.words_), "vectors": self.vectors_}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        self.words_ = unpack_words(arrays["words"])
        self.vectors_ = np.ascontiguousarray(arrays["vectors"], dtype=np.float32)
        if self.vectors_.ndim != 2 or len(self.vectors_) != len(self.words_):
            shape = self.vectors_.shape  # sparse products look at no row's number
            raise ValueError(f"{len(self.words_)} words cannot have vectors of the shape {shape}")
        self._index = {word: i for i, word in enumerate(self.words_)}
        self.dimension = self.vectors_.shape[1]
        self._use_more(arrays)
        self.fingerprint = fingerprint_of(self, *self.state())
        return self

    def _use_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take up what an encoder has besides word vectors."""


def _means(columns: list[int], ends: list[int], table: NDArray[np.float32]) -> Vectors:
    ones = np.ones(len(columns), np.float32)
    counts = sparse.csr_array((ones, columns, ends), shape=(len(ends) - 1, len(table)))
    sums = np.asarray(counts @ table, dtype=np.float32)
    lengths = np.maximum(np.diff(np.asarray(ends)), 1).astype(np.float32)
    means: Vectors = sums / lengths[:, None]
    return means


@dataclass
class Word2VecEncoder(WordAverage):
    """The mean of skip-gram vectors, with the settings of Song & Raghunathan (2020), §6.1."""

    vector_size: int = setting(100, "Dimensions", low=1, high=5000, paper="SR20")
    window: int = setting(5, "Words around that a word foretells", low=1, paper="SR20")
    negative: int = setting(25, "Random words told apart from each word", low=1, paper="SR20")
    learning_rate: float = setting(0.05, "At the start", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(5, "Passes over the texts", low=1, paper="SR20")
    min_count: int = setting(2, "Leave out rarer words", low=1)
    seed: int = setting(0, "Of every drawing", low=0)
    name: str = field(default="word2vec", init=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts, in one thread: more would make it depend on their timing.

        Raises
        ------
        InvalidInputError
            Too few texts, or no word stands `min_count` times.
        """
        model = self._trained(texts, on_progress)
        vectors = np.asarray(model.wv.vectors, np.float32)
        return self.load_state({"words": pack_words(model.wv.index_to_key), "vectors": vectors}, {})

    def _trained(self, texts: Sequence[str], on_progress: OnProgress, **more: Any) -> Any:
        sentences = [words(text) for text in training_texts(texts)]
        model = self._kind()(
            sg=1,
            vector_size=self.vector_size,
            window=self.window,
            negative=self.negative,
            alpha=self.learning_rate,
            min_count=self.min_count,
            seed=self.seed,
            workers=1,
            hashfxn=stable_hash,
            **more,
        )
        train_gensim(model, sentences, self.epochs, on_progress)
        return model

    def _kind(self) -> Any:
        return Word2Vec


@dataclass
class FastTextEncoder(Word2VecEncoder):
    """The mean of FastText vectors: a word is its own vector plus those of its parts.

    A word outside the list has the mean of its parts' vectors.
    """

    min_part: int = setting(3, "Letters of the shortest part", low=1, high=10)
    max_part: int = setting(6, "Letters of the longest part", low=1, high=10)
    n_cells: int = setting(2**16, "Cells that parts are hashed into", low=1, high=2**21)
    name: str = field(default="fasttext", init=False)

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Train on texts; see `Word2VecEncoder.fit`."""
        model = self._trained(
            texts, on_progress, min_n=self.min_part, max_n=self.max_part, bucket=self.n_cells
        )
        return self.load_state(
            {
                "words": pack_words(model.wv.index_to_key),
                "vectors": np.asarray(model.wv.vectors, np.float32),
                "parts": np.asarray(model.wv.vectors_ngrams, np.float32),
            },
            {},
        )

    def _vector_of(self, word: str) -> NDArray[np.float32] | None:
        parts = compute_ngrams_bytes(word, self.min_part, self.max_part)
        if not parts:
            return None
        cells = [ft_hash_bytes(part) % self.n_cells for part in parts]
        mean: NDArray[np.float32] = self.parts_[cells].mean(0, dtype=np.float32)
        return mean

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the words, their vectors and those of the cells."""
        arrays, meta = super().state()
        cut = {"parts": [self.min_part, self.max_part, self.n_cells]}
        return arrays | {"parts": self.parts_}, meta | cut

    def _use_more(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.parts_ = np.ascontiguousarray(arrays["parts"], dtype=np.float32)
        if self.parts_.shape != (self.n_cells, self.dimension):
            told = f"{(self.n_cells, self.dimension)}, got {self.parts_.shape}"
            raise ValueError(f"the cells of word parts must have the shape {told}")

    def _kind(self) -> Any:
        return FastText
