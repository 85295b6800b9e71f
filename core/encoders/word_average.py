"""Sentence vectors as the mean of word vectors trained here (SR20 §6.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from gensim.models import FastText, Word2Vec
from gensim.models.fasttext_inner import compute_ngrams_bytes, ft_hash_bytes
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.encoders.fitted import Arrays, CorpusEncoder, pack_words, unpack_words
from leakscope.core.encoders.gensim_training import stable_hash, train_gensim
from leakscope.core.protocols import OnProgress, Vectors
from leakscope.core.specs import setting
from leakscope.core.text import words


class WordAverage(CorpusEncoder):
    """Base of encoders that average word vectors.

    A word counts as often as it occurs; words without a vector are skipped.
    """

    words_: list[str]
    vectors_: NDArray[np.float32]

    def embed(self, texts: list[str], on_progress: OnProgress) -> Vectors:
        """Encode texts: average the vectors of each text's words; 0 if none is known."""
        columns: list[int] = []
        ends = [0]
        index, table = dict(self._index), [self.vectors_]
        for text in texts:
            for word in words(text):
                if word not in index:
                    vector = self._vector_of_unknown(word)
                    index[word] = -1 if vector is None else len(self.words_) + len(table) - 1
                    table += [] if vector is None else [vector[None]]
                if index[word] >= 0:
                    columns.append(index[word])
            ends.append(len(columns))
        return _mean_vectors(columns, ends, np.concatenate(table))

    def _vector_of_unknown(self, word: str) -> NDArray[np.float32] | None:
        """Return None: a word outside the vocabulary has no vector, unless a subclass gives one."""
        return None

    def set_arrays(self, arrays: Arrays) -> None:
        """Set the vocabulary and its word vectors from learned arrays."""
        self.words_ = unpack_words(arrays["words"])
        self.vectors_ = arrays["vectors"]
        if self.vectors_.ndim != 2 or len(self.vectors_) != len(self.words_):
            shape = self.vectors_.shape  # sparse products would not check the number of rows
            raise ValueError(f"{len(self.words_)} words cannot have vectors of the shape {shape}")
        self._index = {word: i for i, word in enumerate(self.words_)}
        self.dimension = self.vectors_.shape[1]


def _mean_vectors(columns: list[int], ends: list[int], table: NDArray[np.float32]) -> Vectors:
    """Average each text's rows of a vector table; `columns` holds all texts' row numbers."""
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
    window: int = setting(5, "Context words on each side of a word", low=1, paper="SR20")
    negative: int = setting(25, "Negative samples per word", low=1, paper="SR20")
    learning_rate: float = setting(0.05, "Initial learning rate", low=1e-6, high=1.0, paper="SR20")
    epochs: int = setting(5, "Passes over the texts", low=1, paper="SR20")
    min_count: int = setting(2, "Minimum number of occurrences of a word", low=1)
    seed: int = setting(0, "Random seed", low=0)
    name: str = field(default="word2vec", init=False)

    gensim_class: ClassVar[Any] = Word2Vec

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Train word vectors on texts, reproducibly in one thread; return the arrays."""
        return self._arrays(self._train_skip_gram(texts, on_progress))

    def _arrays(self, model: Any) -> Arrays:
        """Copy a gensim model's vocabulary and word vectors to arrays, by name."""
        vectors = np.asarray(model.wv.vectors, np.float32)
        return {"words": pack_words(model.wv.index_to_key), "vectors": vectors}

    def _train_skip_gram(self, texts: list[str], on_progress: OnProgress, **more: Any) -> Any:
        """Train a gensim skip-gram model on texts and return it."""
        sentences = [words(text) for text in texts]
        model = self.gensim_class(
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


@dataclass
class FastTextEncoder(Word2VecEncoder):
    """The mean of FastText vectors: a word's vector plus those of its character n-grams.

    A word outside the vocabulary has the mean of its n-grams' vectors.
    """

    min_part: int = setting(3, "Characters of the shortest n-gram", low=1, high=10)
    max_part: int = setting(6, "Characters of the longest n-gram", low=1, high=10)
    n_cells: int = setting(2**16, "Number of hash cells for n-grams", low=1, high=2**21)
    name: str = field(default="fasttext", init=False)

    gensim_class = FastText

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Train word and n-gram vectors on texts, reproducibly in one thread; return the arrays."""
        model = self._train_skip_gram(
            texts, on_progress, min_n=self.min_part, max_n=self.max_part, bucket=self.n_cells
        )
        return self._arrays(model) | {"parts": np.asarray(model.wv.vectors_ngrams, np.float32)}

    def _vector_of_unknown(self, word: str) -> NDArray[np.float32] | None:
        """Average the vectors of a word's character n-grams; None if it has none."""
        parts = compute_ngrams_bytes(word, self.min_part, self.max_part)
        if not parts:
            return None
        cells = [ft_hash_bytes(part) % self.n_cells for part in parts]
        mean: NDArray[np.float32] = self.parts_[cells].mean(0, dtype=np.float32)
        return mean

    def vector_settings(self) -> dict[str, Any]:
        """Return by name the settings that determine a word's n-grams."""
        return {"parts": [self.min_part, self.max_part, self.n_cells]}

    def set_arrays(self, arrays: Arrays) -> None:
        """Set the vocabulary and the vectors of words and n-grams from learned arrays."""
        super().set_arrays(arrays)
        self.parts_ = arrays["parts"]
        if self.parts_.shape != (self.n_cells, self.dimension):
            text = f"{(self.n_cells, self.dimension)}, got {self.parts_.shape}"
            raise ValueError(f"the cells of word parts must have the shape {text}")
