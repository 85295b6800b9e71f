"""Windows of words (w_b … w_0 … w_e), extracted from numbered sentences into flat arrays.

Where the paper leaves it open: a window lies within one sentence and is complete, so words near the
ends of a sentence are no centres and a score does not depend on the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import words

_Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberedWords:
    """The words of documents as a flat sequence of word numbers.

    Attributes
    ----------
    words : tuple of str
        By number, in the order of their first occurrence.
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
        """Count the occurrences of each word in the chosen documents.

        Parameters
        ----------
        is_counted : ndarray of bool, shape (n_documents,)
        """
        chosen = self.ids[is_counted[self.documents]]
        return np.bincount(chosen, minlength=len(self.words))


def number_words(documents: Sequence[Sequence[str]]) -> NumberedWords:
    """Replace the words of documents, each a sequence of sentences, by word numbers.

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
        """Return the windows of the given rows."""
        return Windows(self.centres[rows], self.contexts[rows], self.documents[rows])

    def codes(self) -> _Ids:
        """Return a code for each window, equal for windows with the same sequence of words."""
        codes = self.centres
        for column in self.contexts.T:
            _, codes = np.unique(codes * (column.max(initial=0) + 1) + column, return_inverse=True)
        return codes.astype(np.int64)


def extract_windows(numbered: NumberedWords, n_words: int = 5) -> Windows:
    """Extract every window of `n_words` words that lies within one sentence.

    Implements the targets of Song & Raghunathan (2020), §5.1 and §6.4: C = [w_b, …, w_0, …, w_e],
    a sliding window of 5 words. Differs from the paper: nothing; it does not specify windows at the
    ends of a sentence, which are left out here.

    Raises
    ------
    InvalidInputError
        A length that has no word in the middle.

    Examples
    --------
    >>> found = extract_windows(number_words([["one two three four", "five six"]]), 3)
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
