"""How similar the word in the middle of a window is to those around it (Alg. 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.words.vectors import NO_VECTOR
from core.attacks.membership.words.windows import Windows

__all__ = ["distance_similarities", "window_similarity"]

_STEP = 20_000
"""Windows at once: what is held in memory does not grow with their number."""


def window_similarity(
    windows: Windows,
    units: NDArray[np.float32],
    rows: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the mean cosine of the centre word's vector and those of the words around it.

    Implements Song & Raghunathan (2020), §5.1 and Alg. 4: the score is the mean of
    Δ = {δ(v_{w_0}, v_{w_i}) : w_i ∈ C∖{w_0}}, δ being the cosine. Differs from the paper: nothing;
    it does not tell what to do with words that have no vector. They are left out of the mean, as
    the centre word itself is where it stands in the window again. Another word that stands there
    twice counts twice.

    Parameters
    ----------
    units : ndarray of float32, shape (m, d)
        Unit vectors of the words that have one.
    rows : ndarray of int64, shape (n_words,)
        The row of `units` of each numbered word, NO_VECTOR where it has none.
    weights : ndarray of float64, shape (m,), optional
        How much each word counts where it stands around another; all alike where it is left out.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [-1, 1]; NaN where the centre has no vector, or no word around it has.
    """
    table = np.vstack([units, np.zeros_like(units[:1])])  # its last row is NO_VECTOR's
    shares = np.append(np.ones(len(units)) if weights is None else weights, 0.0)
    scores = np.full(len(windows), np.nan)
    for start in range(0, len(windows), _STEP):
        part = slice(start, start + _STEP)
        centres, contexts = windows.centres[part], windows.contexts[part]
        counts = np.where(contexts != centres[:, None], shares[rows[contexts]], 0.0)
        cosines = np.einsum("nd,nkd->nk", table[rows[centres]], table[rows[contexts]])
        total = np.where(rows[centres] == NO_VECTOR, 0.0, counts.sum(1))
        np.divide((cosines * counts).sum(1), total, out=scores[part], where=total > 0)
    return scores


def distance_similarities(
    windows: Windows,
    units: NDArray[np.float32],
    rows: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the same mean for the words at each distance from the centre apart.

    Parameters
    ----------
    units, rows, weights
        As for `window_similarity`.

    Returns
    -------
    ndarray of float64, shape (n, (n_words - 1) / 2)
        One word away first; 0 where neither of the two words at a distance counts.
    """
    half = windows.contexts.shape[1] // 2
    pairs = [windows.contexts[:, [half - distance, half + distance - 1]]
             for distance in range(1, half + 1)]  # fmt: skip
    found = [
        window_similarity(Windows(windows.centres, pair, windows.documents), units, rows, weights)
        for pair in pairs
    ]
    return np.nan_to_num(np.column_stack(found))
