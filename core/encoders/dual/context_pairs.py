"""Pairs of sentences in context, (x_a, x_b): what dual encoders are trained on."""

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

from core.corpora.documents import Corpus
from core.corpora.sentences import split_sentences
from core.errors import InvalidInputError
from core.text import MAX_CHARACTERS, check_text, check_texts, words

__all__ = ["ContextPairs", "labelled_pairs_of", "pairs_of"]

MIN_PAIRS = 20
_Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ContextPairs:
    """Sentences and which of them stand in context.

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
        """Check pairs of texts and number the texts.

        Raises
        ------
        InvalidInputError
            Fewer than 20 pairs, one that is no pair, or a text that cannot be encoded.
        """
        known: dict[str, int] = {}
        numbers = np.empty((len(pairs), 2), dtype=np.int64)
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidInputError(f"pair {i + 1} must be two texts, x_a and x_b.")
            for side, text in enumerate(pair):
                numbers[i, side] = _number(text, known, f"text {side + 1} of pair {i + 1}")
        if len(pairs) < MIN_PAIRS:
            raise InvalidInputError(
                f"A dual encoder needs at least {MIN_PAIRS} pairs of consecutive sentences, got "
                f"{len(pairs)}. Give more texts, in the order of their document."
            )
        return cls(tuple(known), numbers[:, 0], numbers[:, 1])

    @classmethod
    def consecutive(cls, texts: Sequence[str]) -> ContextPairs:
        """Take each text and the next as a pair."""
        texts = check_texts(texts)
        return cls.of(list(pairwise(texts)))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.first)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pairs in order: the identity of a checkpoint."""
        digest = hashlib.sha256("\0".join(self.texts).encode())
        digest.update(self.first.tobytes() + self.second.tobytes())
        return digest.hexdigest()

    @cached_property
    def _neighbours(self) -> sparse.csr_array:
        """Which text is in the context of which, itself included: (texts, texts), symmetric."""
        own = np.arange(len(self.texts))
        rows = np.concatenate([self.first, self.second, own])
        columns = np.concatenate([self.second, self.first, own])
        return sparse.csr_array(
            (np.ones(len(rows), dtype=bool), (rows, columns)), shape=(len(own), len(own))
        )

    def in_context(self, rows: _Rows) -> NDArray[np.bool_]:
        """Return, for pairs i and j of a batch, whether x_b of j is no negative of x_a of i.

        X_neg holds sentences "that are not in the context" (SR20 §2.1): the same sentence and
        its neighbours are left out, the pair's own x_b (the diagonal) as well.
        """
        table: NDArray[np.bool_] = (
            self._neighbours[self.first[rows]][:, self.second[rows]].toarray().astype(bool)
        )
        table |= self.second[rows][:, None] == self.second[rows][None, :]
        return table

    def split(self, n_held_out: int, seed: int) -> tuple[_Rows, _Rows]:
        """Return rows to train on and held-out rows that share no sentence with them."""
        order = np.random.default_rng([seed, 7]).permutation(len(self))
        held = order[:n_held_out]
        is_held = np.zeros(len(self.texts), dtype=bool)
        is_held[self.first[held]] = is_held[self.second[held]] = True
        kept = np.flatnonzero(~is_held[self.first] & ~is_held[self.second])
        return kept, held


def _number(text: Any, known: dict[str, int], name: str) -> int:
    """Return the position of a text, checked when it is new."""
    if not isinstance(text, str) or text not in known:
        known[check_text(text, name=name)] = len(known)
    return known[text]


def pairs_of(corpus: Corpus, *, min_words: int = 3, max_words: int = 100) -> list[tuple[str, str]]:
    """Return each sentence of a corpus with the next one of its document.

    Parameters
    ----------
    min_words, max_words : int
        Pairs with a shorter or longer sentence (headings, lists, tables) are left out.

    Raises
    ------
    InvalidInputError
        The corpus holds single sentences or no two sentences in a row.
    """
    return labelled_pairs_of(corpus, min_words=min_words, max_words=max_words)[0]


def labelled_pairs_of(
    corpus: Corpus, *, min_words: int = 3, max_words: int = 100
) -> tuple[list[tuple[str, str]], list[str | None]]:
    """Return what `pairs_of` does, and the label of the document that each pair comes from."""
    found: list[tuple[str, str]] = []
    labels: list[str | None] = []
    for document in () if corpus.is_split else corpus.documents:
        sentences = split_sentences(document.text, corpus.language)
        fits = [min_words <= len(words(s)) <= max_words and len(s) <= MAX_CHARACTERS
                for s in sentences]  # fmt: skip
        found += [
            (one, two)
            for i, (one, two) in enumerate(pairwise(sentences))
            if fits[i] and fits[i + 1]
        ]
        labels += [document.label] * (len(found) - len(labels))
    if not found:
        raise InvalidInputError(
            f"Corpus {corpus.name!r} has no two sentences in a row. Give running text, or name "
            "the column that tells which rows are one document."
        )
    return found, labels
