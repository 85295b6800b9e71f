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
        """Count the occurrences of each word in the documents that a mask selects.

        Parameters
        ----------
        is_counted : ndarray of bool, shape (n_documents,)
        """
        chosen = self.ids[is_counted[self.documents]]
        return np.bincount(chosen, minlength=len(self.words))


def number_words(documents: Sequence[Sequence[str]]) -> NumberedWords:
    """Split documents, given as sequences of sentences, into words and number these.

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
        """Return new windows of only the given rows, by index or mask."""
        return Windows(self.centres[rows], self.contexts[rows], self.documents[rows])

    def codes(self) -> _Ids:
        """Return a number for each window, equal for windows with the same sequence of words."""
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


_Flags = NDArray[np.bool_]


def frequent_in_both(
    inside: NDArray[np.int64], outside: NDArray[np.int64], min_count: int
) -> NDArray[np.bool_]:
    """Return a mask of words that occur at least `min_count` times in members and in the others."""
    return np.minimum(inside, outside) >= min_count


def windows_in_both(windows: Windows, members: _Flags) -> _Flags:
    """Return a mask of windows that occur identically among members and non-members.

    Examples
    --------
    >>> same, other = np.array([[1, 2], [1, 2]]), np.array([[1, 3]])
    >>> found = Windows(np.zeros(3, int), np.vstack([same, other]), np.arange(3))
    >>> windows_in_both(found, np.array([True, False, False])).tolist()
    [True, True, False]
    """
    codes = windows.codes()
    n_codes = int(codes.max(initial=-1)) + 1
    inside = np.bincount(codes[members], minlength=n_codes) > 0
    outside = np.bincount(codes[~members], minlength=n_codes) > 0
    both: _Flags = (inside & outside)[codes]
    return both


def balanced_mask(groups: NDArray[np.int64], members: _Flags, *, seed: int = 0) -> _Flags:
    """Draw a mask of samples with as many members as non-members in each group.

    Surplus samples of a kind are left out at random.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        Not negative, such as the centre word of each window.

    Examples
    --------
    >>> found = balanced_mask(np.array([7, 7, 7, 8]), np.array([True, True, False, True]))
    >>> int(found[:2].sum()), found[2:].tolist()
    (1, [True, False])
    """
    fewest = np.minimum(
        np.bincount(groups[members], minlength=int(groups.max(initial=0)) + 1),
        np.bincount(groups[~members], minlength=int(groups.max(initial=0)) + 1),
    )
    order = np.random.default_rng([seed, 11]).permutation(len(groups))
    kinds = 2 * groups[order] + members[order]
    order = order[np.argsort(kinds, kind="stable")]
    kinds = np.sort(kinds)
    starts = np.searchsorted(kinds, kinds)
    kept = np.zeros(len(groups), dtype=bool)
    kept[order] = np.arange(len(groups)) - starts < fewest[groups[order]]
    return kept


def frequency_deciles(frequencies: NDArray[np.float64], *, seed: int = 0) -> NDArray[np.int64]:
    """Return each item's decile by frequency: 1 for the most frequent tenth, 10 for the rarest.

    Deciles are equally full: ties are broken at random.

    Examples
    --------
    >>> frequency_deciles(np.array([5.0, 90.0, *[30.0] * 8])).tolist()[:2]
    [10, 1]
    """
    lots = np.random.default_rng([seed, 12]).random(len(frequencies))
    order = np.lexsort([lots, -np.asarray(frequencies)])
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) * 10 // max(1, len(order)) + 1
    return found


def word_deciles(
    centres: NDArray[np.int64], counts: NDArray[np.int64], *, seed: int = 0
) -> NDArray[np.int64]:
    """Return the frequency decile of each window's centre word.

    Parameters
    ----------
    centres : ndarray of int64, shape (n,)
    counts : ndarray of int64, shape (n_words,)
        The count of each numbered word, in members and non-members together.
    """
    used = np.unique(centres)
    of_word = np.zeros(len(counts), dtype=np.int64)
    of_word[used] = frequency_deciles(counts[used].astype(np.float64), seed=seed)
    found: NDArray[np.int64] = of_word[centres]
    return found
