"""Windows of words (w_b … w_0 … w_e): from numbered sentences, a flat array for all of them.

What the paper leaves open is decided here. A window lies within one sentence and is whole: near the
ends of a sentence no word is a centre, so that no score says where its window stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError
from core.text import words

__all__ = ["NumberedWords", "Windows", "number_words", "windows_of"]

_Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberedWords:
    """The words of sentences as numbers, one after another.

    Attributes
    ----------
    words : tuple of str
        By number, in the order in which they first stand.
    ids : ndarray of int64, shape (n,)
        The word at each place.
    sentences, documents : ndarray of int64, shape (n,)
        The sentence and the document at each place, counted from 0.
    """

    words: tuple[str, ...]
    ids: _Ids
    sentences: _Ids
    documents: _Ids

    def counts(self, is_counted: NDArray[np.bool_]) -> _Ids:
        """Return how often each word stands in the documents that are counted.

        Parameters
        ----------
        is_counted : ndarray of bool, shape (n_documents,)
        """
        chosen = self.ids[is_counted[self.documents]]
        return np.bincount(chosen, minlength=len(self.words))


def number_words(documents: Sequence[Sequence[str]]) -> NumberedWords:
    """Return the words of documents, each a sequence of sentences, as numbers.

    Examples
    --------
    >>> found = number_words([["The cat sat.", "The dog."], ["A cat!"]])
    >>> found.words, found.ids.tolist(), found.documents.tolist()
    (('the', 'cat', 'sat', 'dog'), [0, 1, 2, 0, 3, 1], [0, 0, 0, 0, 0, 1])
    """
    known: dict[str, int] = {}
    cut = [[words(sentence) for sentence in sentences] for sentences in documents]
    ids = [known.setdefault(w, len(known)) for each in cut for found in each for w in found]
    lengths = np.array([len(found) for each in cut for found in each], dtype=np.int64)
    owners = np.repeat(np.arange(len(cut)), [len(each) for each in cut])
    places = np.repeat(np.arange(len(lengths)), lengths)
    return NumberedWords(tuple(known), np.array(ids, dtype=np.int64), places, owners[places])


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of words, numbered as in the `NumberedWords` that they come from.

    Attributes
    ----------
    centres : ndarray of int64, shape (n,)
        w_0.
    contexts : ndarray of int64, shape (n, n_words - 1)
        The words around, in their order.
    documents : ndarray of int64, shape (n,)
    """

    centres: _Ids
    contexts: _Ids
    documents: _Ids

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.centres)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Windows:
        """Return some of them."""
        return Windows(self.centres[rows], self.contexts[rows], self.documents[rows])

    def codes(self) -> _Ids:
        """Return a number for each window: equal where all words are, and in the same order."""
        codes = self.centres
        for column in self.contexts.T:
            _, codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)
        return codes.astype(np.int64)


def windows_of(numbered: NumberedWords, n_words: int = 5) -> Windows:
    """Return every window of `n_words` words that lies within one sentence.

    Implements the targets of Song & Raghunathan (2020), §5.1 and §6.4: C = [w_b, …, w_0, …, w_e],
    a sliding window of 5 words. Differs from the paper: nothing; it does not tell what becomes of
    windows at the ends of a sentence, which are left out here.

    Raises
    ------
    InvalidInputError
        A length that has no word in the middle.

    Examples
    --------
    >>> found = windows_of(number_words([["one two three four", "five six"]]), 3)
    >>> found.centres.tolist(), found.contexts.tolist()
    ([1, 2], [[0, 2], [1, 3]])
    """
    if n_words < 3 or n_words % 2 == 0:
        raise InvalidInputError(f"n_words must be odd and at least 3, got {n_words}.")
    half = n_words // 2
    places = np.arange(half, max(half, len(numbered.ids) - half))
    places = places[numbered.sentences[places - half] == numbered.sentences[places + half]]
    around = np.r_[-half:0, 1 : half + 1]
    return Windows(
        numbered.ids[places],
        numbered.ids[places[:, None] + around],
        numbered.documents[places],
    )
