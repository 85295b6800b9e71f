"""The number of words to answer: the one that maximises the expected F1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def best_counts(
    probabilities: NDArray[Any], expected_size: NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Return, for each row of word probabilities, how many words maximise the expected F1.

    Words are taken as independent. Answering the k likeliest has an expected F1 of about
    2 Σ_{i≤k} p_i / (k + m), m being the expected size of the true set; the best k ≥ 1 is returned.

    Parameters
    ----------
    probabilities : ndarray, shape (n, m)
        Descending in each row.
    expected_size : ndarray, shape (n,), optional
        Expected number of true words; by default the row sums of the probabilities.

    Examples
    --------
    >>> best_counts(np.array([[0.9, 0.8, 0.1, 0.0], [0.9, 0.8, 0.7, 0.6]]))
    array([2, 4])
    """
    p = np.asarray(probabilities, dtype=np.float64)
    size = p.sum(1) if expected_size is None else np.asarray(expected_size, dtype=np.float64)
    k = np.arange(1, p.shape[1] + 1)
    expected_f1 = 2 * np.cumsum(p, axis=1) / (k + size[:, None])
    return expected_f1.argmax(1) + 1


def best_count(probabilities: NDArray[Any]) -> int:
    """Return how many words maximise the expected F1, given one row of descending probabilities."""
    return int(best_counts(np.asarray(probabilities)[None])[0])
