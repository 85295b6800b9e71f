"""Which windows may be held against each other: members and others that differ in nothing else.

A word that stands on one side only tells membership without any attack: such a word has a vector,
or has none. So do a window that stands on both sides, and words that stand on one side more often.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.words.windows import Windows

__all__ = ["deciles", "matched", "on_both_sides", "twins", "word_deciles"]

_Flags = NDArray[np.bool_]


def on_both_sides(
    inside: NDArray[np.int64], outside: NDArray[np.int64], min_count: int
) -> NDArray[np.bool_]:
    """Return which words stand at least `min_count` times on either side."""
    return np.minimum(inside, outside) >= min_count


def twins(windows: Windows, members: _Flags) -> _Flags:
    """Return which windows stand, word by word, among members and among others.

    Examples
    --------
    >>> same, other = np.array([[1, 2], [1, 2]]), np.array([[1, 3]])
    >>> found = Windows(np.zeros(3, int), np.vstack([same, other]), np.arange(3))
    >>> twins(found, np.array([True, False, False])).tolist()
    [True, True, False]
    """
    codes = windows.codes()
    n_codes = int(codes.max(initial=-1)) + 1
    inside = np.bincount(codes[members], minlength=n_codes) > 0
    outside = np.bincount(codes[~members], minlength=n_codes) > 0
    both: _Flags = (inside & outside)[codes]
    return both


def matched(groups: NDArray[np.int64], members: _Flags, *, seed: int = 0) -> _Flags:
    """Return which samples to keep so that each group has as many members as others.

    What is too many of a kind is left out by lot.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        Not negative, such as the centre word of each window.

    Examples
    --------
    >>> found = matched(np.array([7, 7, 7, 8]), np.array([True, True, False, True]))
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


def deciles(frequencies: NDArray[np.float64], *, seed: int = 0) -> NDArray[np.int64]:
    """Return the tenth that each thing is in: 1 of the most frequent, 10 of the rarest.

    Tenths are equally full: of things that are equally frequent, the lot decides.

    Examples
    --------
    >>> deciles(np.array([5.0, 90.0, *[30.0] * 8])).tolist()[:2]
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
    """Return the decile of each window: the tenth of the centre words that its own is in.

    Parameters
    ----------
    centres : ndarray of int64, shape (n,)
    counts : ndarray of int64, shape (n_words,)
        How often each numbered word stands, members or not.
    """
    used = np.unique(centres)
    of_word = np.zeros(len(counts), dtype=np.int64)
    of_word[used] = deciles(counts[used].astype(np.float64), seed=seed)
    found: NDArray[np.int64] = of_word[centres]
    return found
