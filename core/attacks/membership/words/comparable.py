"""Select comparable windows: members and non-members that do not differ in anything else.

A word that occurs on one side only reveals membership without an attack, since it has a vector or
has none. Windows that occur on both sides, and words more frequent on one side, distort as well.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.words.windows import Windows

_Flags = NDArray[np.bool_]


def frequent_in_both(
    inside: NDArray[np.int64], outside: NDArray[np.int64], min_count: int
) -> NDArray[np.bool_]:
    """Return which words occur at least `min_count` times among members and among non-members."""
    return np.minimum(inside, outside) >= min_count


def windows_in_both(windows: Windows, members: _Flags) -> _Flags:
    """Return which windows occur identically among members and among non-members.

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
    """Return a random mask of samples that balances members and non-members in each group.

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
    """Return the frequency decile of each item: 1 for the most frequent tenth, 10 for the rarest.

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
