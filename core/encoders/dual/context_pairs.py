"""Pairs of consecutive sentences (x_a, x_b), on which dual encoders are trained."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.corpora.documents import Corpus
from leakscope.core.corpora.sentences import split_sentences
from leakscope.core.errors import InvalidInputError
from leakscope.core.text import MAX_CHARACTERS, check_text, check_texts, words

MIN_PAIRS = 20
_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ContextPairs:
    """Distinct sentences, and the pairs of them that occur in context.

    Parameters
    ----------
    texts : tuple of str
        Each sentence once.
    first, second : ndarray of int64, shape (n,)
        Positions of x_a and x_b in `texts`.
    """

    texts: tuple[str, ...]
    first: _Rows
    second: _Rows

    @classmethod
    def of(cls, pairs: Sequence[Sequence[str]]) -> ContextPairs:
        """Check pairs of texts and build `ContextPairs`, each distinct text stored once.

        Raises
        ------
        InvalidInputError
            Fewer than 20 pairs, an entry that is not a pair, or a text that cannot be encoded.
        """
        known: dict[str, int] = {}
        numbers = np.empty((len(pairs), 2), dtype=np.int64)
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidInputError(f"pair {i + 1} must be two texts, x_a and x_b.")
            for side, text in enumerate(pair):
                numbers[i, side] = _text_id(text, known, f"text {side + 1} of pair {i + 1}")
        if len(pairs) < MIN_PAIRS:
            raise InvalidInputError(
                f"A dual encoder needs at least {MIN_PAIRS} pairs of consecutive sentences, got "
                f"{len(pairs)}. Provide more texts, in document order."
            )
        return cls(tuple(known), numbers[:, 0], numbers[:, 1])

    @classmethod
    def consecutive(cls, texts: Sequence[str]) -> ContextPairs:
        """Check texts in document order and pair each one with the next."""
        texts = check_texts(texts)
        return cls.of(list(pairwise(texts)))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pairs in order, which identifies a checkpoint."""
        digest = hashlib.sha256("\0".join(self.texts).encode())
        digest.update(self.first.tobytes() + self.second.tobytes())
        return digest.hexdigest()

    @cached_property
    def _neighbours(self) -> sparse.csr_array:
        """Sparse symmetric (texts, texts) matrix of texts in context, diagonal included."""
        own = np.arange(len(self.texts))
        rows = np.concatenate([self.first, self.second, own])
        columns = np.concatenate([self.second, self.first, own])
        return sparse.csr_array(
            (np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(own), len(own))
        )

    def in_context(self, rows: _Rows) -> NDArray[np.bool_]:
        """Return the (n, n) mask of a batch: true where x_b must not be a negative of x_a.

        X_neg holds sentences "that are not in the context" (SR20 §2.1): the same sentence and
        its neighbours are left out, the pair's own x_b (the diagonal) as well.
        """
        table: NDArray[np.bool_] = (
            self._neighbours[self.first[rows]][:, self.second[rows]].toarray().astype(bool)
        )
        table |= self.second[rows][:, None] == self.second[rows][None, :]
        return table

    def split(self, n_held_out: int, seed: int) -> tuple[_Rows, _Rows]:
        """Split row numbers at random into training and held-out pairs without a common text."""
        order = np.random.default_rng([seed, 7]).permutation(len(self))
        held = order[:n_held_out]
        is_held = np.zeros(len(self.texts), dtype=bool)
        is_held[self.first[held]] = is_held[self.second[held]] = True
        kept = np.flatnonzero(~is_held[self.first] & ~is_held[self.second])
        return kept, held


def _text_id(text: Any, known: dict[str, int], name: str) -> int:
    """Return the number of a text; check a new text and give it the next number."""
    if not isinstance(text, str) or text not in known:
        known[check_text(text, name=name)] = len(known)
    return known[text]


def pairs_of(corpus: Corpus, *, min_words: int = 3, max_words: int = 100) -> list[tuple[str, str]]:
    """Pair each sentence of a corpus with the next one of its document; return the pairs.

    Parameters
    ----------
    min_words, max_words : int
        Pairs with a shorter or longer sentence (headings, lists, tables) are left out.

    Raises
    ------
    InvalidInputError
        The corpus contains single sentences, or no two consecutive sentences.
    """
    return labelled_pairs_of(corpus, min_words=min_words, max_words=max_words)[0]


def labelled_pairs_of(
    corpus: Corpus, *, min_words: int = 3, max_words: int = 100
) -> tuple[list[tuple[str, str]], list[str | None]]:
    """Pair sentences as `pairs_of` does; return the pairs and their documents' labels."""
    found: list[tuple[str, str]] = []
    labels: list[str | None] = []
    for document in () if corpus.is_split else corpus.documents:
        sentences = split_sentences(document.text, corpus.language)
        fits = [
            min_words <= len(words(s)) <= max_words and len(s) <= MAX_CHARACTERS for s in sentences
        ]
        found += [
            (one, two)
            for i, (one, two) in enumerate(pairwise(sentences))
            if fits[i] and fits[i + 1]
        ]
        labels += [document.label] * (len(found) - len(labels))
    if not found:
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has no two consecutive sentences. Provide running text, or "
            "name the column that groups rows into documents."
        )
    return found, labels
