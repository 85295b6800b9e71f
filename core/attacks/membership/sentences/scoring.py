"""Score pairs of consecutive sentences by book, with an attack fitted on a few labelled books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.text import words

N_FOLDS = 4
"""Cross-fitting folds of the labelled books."""

_Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BookPairs:
    """Pairs (x_a, x_b) of consecutive sentences with their books.

    Attributes
    ----------
    texts : tuple of str
        Each sentence once.
    first, second : ndarray of int64, shape (n,)
        Positions of x_a and x_b in `texts`.
    documents : ndarray of int64, shape (n,)
    """

    texts: tuple[str, ...]
    first: _Rows
    second: _Rows
    documents: _Rows

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], documents: Sequence[int]) -> BookPairs:
        """Build from pairs of texts and each pair's book number; number distinct sentences."""
        known: dict[str, int] = {}
        numbers = [known.setdefault(text, len(known)) for pair in pairs for text in pair]
        sides = np.array(numbers, dtype=np.int64).reshape(-1, 2)
        return cls(tuple(known), sides[:, 0], sides[:, 1], np.array(documents, dtype=np.int64))


def rarity(texts: Sequence[str], first: _Rows, second: _Rows) -> NDArray[np.float64]:
    """Return the rarity of each pair of sentences: the mean of −log frequency over its words.

    Song & Raghunathan (2020), §6.4, average the frequencies of a sentence's words; here their
    logarithms are averaged, since the mean of frequencies mostly reflects the count of "the".
    Words of both sentences count alike.

    Examples
    --------
    >>> found = rarity(["up up", "up down", "in"], np.array([0, 1]), np.array([1, 2]))
    >>> found.round(3).tolist()
    [0.785, 1.243]
    """
    cut = [words(text) for text in texts]
    counts = Counter(word for each in cut for word in each)
    n = sum(counts.values())
    sums = np.array([sum(-np.log(counts[word] / n) for word in each) for each in cut])
    lengths = np.array([len(each) for each in cut])
    total: NDArray[np.float64] = sums[first] + sums[second]
    return total / np.maximum(1, lengths[first] + lengths[second])


def mean_by_unit(
    scores: NDArray[np.float64], units: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Average scores by unit, such as a book; return the means and the units in ascending order.

    Implements Song & Raghunathan (2020), Alg. 5, step 11: (1/|Δ|) Σ_{δ_i ∈ Δ} δ_i, Δ being the
    similarities of a book's consecutive sentences. Differs from the paper: nothing.

    Examples
    --------
    >>> means, books = mean_by_unit(np.array([1.0, 2.0, 5.0]), np.array([7, 7, 3]))
    >>> means.tolist(), books.tolist()
    ([5.0, 1.5], [3, 7])
    """
    if scores.shape != units.shape:
        raise InvalidInputError(f"{len(units)} units for {len(scores)} scores.")
    books, places = np.unique(units, return_inverse=True)
    sums = np.bincount(places, weights=scores, minlength=len(books))
    return sums / np.bincount(places, minlength=len(books)), books


def mean_by_book(
    scores: NDArray[np.float64], documents: _Rows, groups: _Rows
) -> tuple[NDArray[np.float64], _Rows, _Rows, _Rows]:
    """Average pair scores by book within each group; return means, books, groups and first rows.

    Returns
    -------
    tuple of ndarray
        Means, the book and the group of each, and the position of one of its samples.

    Examples
    --------
    >>> found = mean_by_book(np.array([1.0, 3.0, 9.0]), np.array([4, 4, 4]), np.array([0, 0, 2]))
    >>> [each.tolist() for each in found]
    [[2.0, 9.0], [4, 4], [0, 2], [0, 2]]
    """
    n_documents = int(documents.max(initial=0)) + 1
    means, codes = mean_by_unit(scores, groups * n_documents + documents)
    _, places = np.unique(groups * n_documents + documents, return_index=True)
    return means, codes % n_documents, codes // n_documents, places


def cross_fitted_scores(
    attack: Callable[[], Any],
    vectors: NDArray[np.float32],
    pairs: BookPairs,
    members: NDArray[np.bool_],
    labelled: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Score every pair by an attack that was not fitted on it, by cross-fitting.

    Unlabelled pairs are scored by an attack fitted on all labelled pairs. Labelled pairs, on which
    the threshold is chosen, are scored by attacks fitted on the other labelled books, a quarter at
    a time, since an attack is overconfident on its own training pairs. Where the rest would be of
    one kind alone, all labelled books are used: with few books, the threshold and the advantage
    are then less reliable.

    Each attack has its own scale. To make a threshold comparable, all scores are
    standardised by median and interquartile range of the pairs under attack, without their labels.
    """
    first, second = vectors[pairs.first], vectors[pairs.second]

    def scores(
        knows: NDArray[np.bool_], asked: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Fit on known pairs; return standardised scores of unlabelled and of asked pairs."""
        fitted = attack().fit(first[knows], second[knows], members[knows])
        under_attack = fitted.score(first[~labelled], second[~labelled])
        own = fitted.score(first[asked], second[asked]) if asked.any() else under_attack[:0]
        return _robust_scale(under_attack, under_attack), _robust_scale(own, under_attack)

    found = np.empty(len(members))
    found[~labelled], _ = scores(labelled, np.zeros(len(members), dtype=bool))
    folds = _assign_folds(pairs.documents, members, labelled)
    for fold in np.unique(folds[labelled]):
        asked = labelled & (folds == fold)
        knows = labelled & (folds != fold)
        is_of_both = members[knows].any() and not members[knows].all()
        _, found[asked] = scores(knows if is_of_both else labelled, asked)
    return found


def _robust_scale(
    scores: NDArray[np.float64], under_attack: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Standardise scores by the median and interquartile range of the scores under attack.

    Examples
    --------
    >>> _robust_scale(np.array([7.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    [2.0, 0.0]
    """
    if not len(under_attack):
        return scores
    low, middle, high = np.percentile(under_attack, [25, 50, 75])
    found: NDArray[np.float64] = (scores - middle) / max(float(high - low), 1e-12)
    return found


def _assign_folds(
    documents: _Rows, members: NDArray[np.bool_], labelled: NDArray[np.bool_]
) -> _Rows:
    """Assign the pairs of labelled books to folds, member and non-member books separately."""
    folds = np.zeros(len(documents), dtype=np.int64)
    for kind in (True, False):
        own = labelled & (members == kind)
        _, places = np.unique(documents[own], return_inverse=True)
        folds[own] = places % N_FOLDS
    return folds
