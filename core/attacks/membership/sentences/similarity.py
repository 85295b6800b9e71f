"""Similarity of consecutive sentences, and its mean by book (SR20, Alg. 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError


def pair_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the dot product Φ(x_a)·Φ(x_b) of each pair of sentence vectors.

    Implements Song & Raghunathan (2020), §5.2, δ being the dot product (§6.4). Differs from the
    paper: nothing.

    Parameters
    ----------
    first, second : ndarray of float32, shape (n, d)

    Examples
    --------
    >>> one = np.array([[1, 2], [0, 3]], dtype=np.float32)
    >>> pair_similarity(one, one[::-1]).tolist()
    [6.0, 6.0]
    """
    if first.shape != second.shape or first.ndim != 2:
        raise InvalidInputError(
            f"Pairs are two rows of vectors of one shape, got {first.shape} and {second.shape}."
        )
    return np.einsum("nd,nd->n", first, second, dtype=np.float64)


def mean_by_unit(
    scores: NDArray[np.float64], units: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean score of each unit, such as a book, and the units in ascending order.

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
