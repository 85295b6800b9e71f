"""Bags of words: every word of a text counted, its order forgotten (Corò 2022, §4.1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from core.encoders.fitted import check_ready, fingerprint_of, training_texts
from core.errors import InvalidInputError
from core.protocols import OnProgress, no_progress
from core.specs import setting
from core.text import STOP_WORDS, check_texts, words

__all__ = ["HashingEncoder", "TfidfEncoder", "pack_words", "unpack_words"]


def _terms(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]


@dataclass
class TfidfEncoder:
    """Word counts times the logarithm of how rare each word is, of unit length.

    The settings of Corò (2022), §4.1.2: stop words removed, words in more than half of the texts
    left out, at most 2^18 words of two characters and more.
    """

    max_document_share: float = setting(
        0.5, "Leave out words that more of the texts hold", low=0.0, high=1.0, paper="C22"
    )
    max_features: int = setting(2**18, "Words counted, the most frequent first", low=2, paper="C22")
    name: str = field(default="tfidf", init=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    gives_sparse = True

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Count in how many texts each word stands.

        Raises
        ------
        InvalidInputError
            Too few texts, or no word is left after the settings.
        """
        vectorizer = self._vectorizer(
            max_df=self.max_document_share, max_features=self.max_features
        )
        texts = training_texts(texts)
        try:
            vectorizer.fit(texts)
        except ValueError as error:
            raise InvalidInputError(
                "No word is left to count: give more texts, or raise max_document_share."
            ) from error
        on_progress(1.0, f"Counted {len(vectorizer.idf_):,} words")
        return self._use(list(vectorizer.get_feature_names_out()), vectorizer.idf_)

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Any:
        """Return sparse float32 rows (n, words) of unit length; 0 where no word is known."""
        check_ready(self)
        return _rows(self.vectorizer_, texts, on_progress)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the words in their order and their idf."""
        idf = np.asarray(self.vectorizer_.idf_, dtype=np.float64)
        return {"words": pack_words(self.words_), "idf": idf}, {}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Restore what `state` returned."""
        return self._use(unpack_words(arrays["words"]), arrays["idf"])

    def _vectorizer(self, **settings: Any) -> TfidfVectorizer:
        return TfidfVectorizer(analyzer=_terms, dtype=np.float32, norm="l2", **settings)

    def _use(self, terms: list[str], idf: NDArray[np.float64]) -> Self:
        self.words_ = terms
        self.vectorizer_ = self._vectorizer(vocabulary=terms)
        self.vectorizer_.idf_ = np.asarray(idf)
        self.dimension = len(terms)
        self.fingerprint = fingerprint_of(self, *self.state())
        return self


@dataclass
class HashingEncoder:
    """Word counts in cells that a signed hash picks, of unit length; nothing is learned.

    The settings of Corò (2022), §4.1.2: stop words removed, 2^18 cells, no idf. Two words that
    share a cell cannot be told apart.
    """

    n_features: int = setting(2**18, "Cells", low=2, high=2**24, paper="C22")
    name: str = field(default="hashing", init=False)
    fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    gives_sparse = True

    def fit(
        self,
        texts: Sequence[str],
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Check the texts; there is nothing to learn from them."""
        training_texts(texts)
        return self.load_state({}, {})

    def encode(self, texts: Sequence[str], on_progress: OnProgress = no_progress) -> Any:
        """Return sparse float32 rows (n, cells) of unit length; 0 where no word is left."""
        check_ready(self)
        return _rows(self.vectorizer_, texts, on_progress)

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return nothing: the settings are all there is."""
        return {}, {"n_features": self.n_features}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        """Be ready."""
        self.vectorizer_ = HashingVectorizer(
            analyzer=_terms, n_features=self.n_features, norm="l2", dtype=np.float32
        )
        self.dimension = self.n_features
        self.fingerprint = fingerprint_of(self, *self.state())
        return self


def _rows(vectorizer: Any, texts: Sequence[str], on_progress: OnProgress) -> Any:
    checked = check_texts(texts)
    if not checked:
        n = getattr(vectorizer, "n_features", None) or len(vectorizer.vocabulary)
        return sparse.csr_array((0, n), dtype=np.float32)
    blocks = []
    for start in range(0, len(checked), 4096):
        blocks.append(vectorizer.transform(checked[start : start + 4096]))
        on_progress(min(1.0, (start + 4096) / len(checked)), "Counting words")
    return sparse.csr_array(sparse.vstack(blocks, format="csr"), dtype=np.float32)


def pack_words(terms: Sequence[str]) -> NDArray[np.uint8]:
    """Return words, which hold no line break, as the bytes of a text with one a line."""
    return np.frombuffer("\n".join(terms).encode(), dtype=np.uint8)


def unpack_words(packed: NDArray[np.uint8]) -> list[str]:
    """Return the words that `pack_words` packed."""
    return packed.tobytes().decode().split("\n")
