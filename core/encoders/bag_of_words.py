"""Bags of words: word counts of a text, without word order (Corò 2022, §4.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from leakscope.core.encoders.fitted import Arrays, CorpusEncoder, pack_words, unpack_words
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, words


def _content_words(text: str) -> list[str]:
    """Split a text into its words, stop words left out."""
    return [word for word in words(text) if word not in STOP_WORDS]


class _BagOfWords(CorpusEncoder):
    """Base of the sparse encoders that count words by a scikit-learn vectorizer."""

    gives_sparse = True
    vectorizer_: Any

    def embed(self, texts: list[str], on_progress: OnProgress) -> Any:
        """Encode texts in blocks as a sparse (n, dimension) matrix of (weighted) word counts."""
        if not texts:
            return sparse.csr_array((0, self.dimension), dtype=np.float32)
        blocks = []
        for start in range(0, len(texts), 4096):
            blocks.append(self.vectorizer_.transform(texts[start : start + 4096]))
            on_progress(min(1.0, (start + 4096) / len(texts)), "Counting words")
        return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


@dataclass
class TfidfEncoder(_BagOfWords):
    """Word counts times the logarithm of how rare each word is, of unit length.

    The settings of Corò (2022), §4.1.2: without stop words and words in more than half of the
    texts; at most 2^18 words of two or more characters.
    """

    max_document_share: float = setting(
        0.5, "Maximum share of the texts that a word may occur in", low=0.0, high=1.0, paper="C22"
    )
    max_features: int = setting(
        2**18, "Maximum number of words, the most frequent first", low=2, paper="C22"
    )
    name: str = field(default="tfidf", init=False)

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Learn from texts the vocabulary and the inverse document frequency of each word."""
        vectorizer = self._vectorizer(
            max_df=self.max_document_share, max_features=self.max_features
        )
        try:
            vectorizer.fit(texts)
        except ValueError as error:
            raise InvalidInputError(
                "No words are left to count. Provide more texts, or raise max_document_share."
            ) from error
        on_progress(1.0, f"Counted {len(vectorizer.idf_):,} words")
        return {
            "words": pack_words(list(vectorizer.get_feature_names_out())),
            "idf": np.asarray(vectorizer.idf_, dtype=np.float64),
        }

    def set_arrays(self, arrays: Arrays) -> None:
        """Set the vocabulary and its inverse document frequencies."""
        terms = unpack_words(arrays["words"])
        self.vectorizer_ = self._vectorizer(vocabulary=terms)
        self.vectorizer_.idf_ = arrays["idf"]
        self.dimension = len(terms)

    def _vectorizer(self, **settings: Any) -> TfidfVectorizer:
        """Build a tf-idf vectorizer with this project's tokenisation and unit length."""
        return TfidfVectorizer(analyzer=_content_words, dtype=np.float32, norm="l2", **settings)


@dataclass
class HashingEncoder(_BagOfWords):
    """Word counts in cells chosen by a signed hash, of unit length; nothing is learned.

    The settings of Corò (2022), §4.1.2: stop words removed, 2^18 cells, no idf. Two words in the
    same cell cannot be distinguished.
    """

    n_features: int = setting(2**18, "Number of hash cells", low=2, high=2**24, paper="C22")
    name: str = field(default="hashing", init=False)

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Return no arrays: the hashing encoder learns nothing from texts."""
        return {}

    def set_arrays(self, arrays: Arrays) -> None:
        """Create the hashing vectorizer; there are no arrays to set."""
        self.vectorizer_ = HashingVectorizer(
            analyzer=_content_words, n_features=self.n_features, norm="l2", dtype=np.float32
        )
        self.dimension = self.n_features

    def vector_settings(self) -> dict[str, Any]:
        """Return the settings that the vectors depend on: the number of hash cells."""
        return {"n_features": self.n_features}
