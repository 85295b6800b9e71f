"""Word vectors as an attacker has them, and removal of their frequency components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.vectors import unit

NO_VECTOR = -1
"""The row number of a word without a vector."""

N_LIKE = 500
"""Words of similar frequency on each side, more and less frequent, whose mean is subtracted."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Word vectors, and the row of each numbered word.

    Attributes
    ----------
    vectors : ndarray of float32, shape (m, d)
        The most frequent word first, as the files of word vectors have them.
    rows : ndarray of int64, shape (n_words,)
        The row of each numbered word; NO_VECTOR where it has none.
    """

    vectors: NDArray[np.float32]
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls, words: Sequence[str], known: Sequence[str], vectors: NDArray[np.float32]
    ) -> WordVectors:
        """Build from the numbered `words` and the `known` words that have the vectors."""
        places = {word: i for i, word in enumerate(known)}
        rows = np.array([places.get(word, NO_VECTOR) for word in words], dtype=np.int64)
        return cls(vectors, rows)

    def only(self, is_used: NDArray[np.bool_]) -> WordVectors:
        """Return the word vectors with those of unused numbered words removed."""
        return WordVectors(self.vectors, np.where(is_used, self.rows, NO_VECTOR))


def remove_frequency(
    vectors: NDArray[np.float32], n_directions: int, n_like: int = N_LIKE
) -> NDArray[np.float32]:
    """Remove frequency components from word vectors and normalise them.

    The mean and the `n_directions` strongest directions are removed (Mu & Viswanath 2018), then the
    mean of the words of similar frequency.

    Parameters
    ----------
    vectors : ndarray of float32, shape (m, d)
        The most frequent word first.
    n_directions : int
        Fewer than d and m.
    n_like : int
        Neighbours by frequency on each side that are in the mean, with the word itself.
    """
    found = unit(vectors)
    found = found - found.mean(0)
    if n_directions:
        _, _, directions = np.linalg.svd(found, full_matrices=False)
        strongest = directions[:n_directions]
        found = found - found @ strongest.T @ strongest
    found = unit(found)
    like: NDArray[np.float32] = unit((found - _moving_mean(found, n_like)).astype(np.float32))
    return like


def _moving_mean(vectors: NDArray[np.float32], n_like: int) -> NDArray[np.float64]:
    """Return the moving mean of rows over n_like neighbours on each side."""
    sums = np.vstack([np.zeros_like(vectors[:1]), vectors]).cumsum(0, dtype=np.float64)
    places = np.arange(len(vectors))
    first, last = np.maximum(0, places - n_like), np.minimum(len(vectors), places + n_like + 1)
    means: NDArray[np.float64] = (sums[last] - sums[first]) / (last - first)[:, None]
    return means


def sampling_weights(n_words: int, threshold: float) -> NDArray[np.float64]:
    """Return the subsampling weight min(1, √(t / f)) of words by frequency rank.

    Implements the sampling of frequent words of Mikolov et al. (2013), §2.3, as gensim has it for
    frequent words. The share f of a word is not known to an attacker but its rank r is, for which
    Zipf's law has f = (1 / r) / Σ 1 / r'.

    Examples
    --------
    >>> sampling_weights(3, 6 / 11 / 4).round(3).tolist()
    [0.5, 0.707, 0.866]
    """
    shares = 1 / np.arange(1, n_words + 1)
    shares /= shares.sum()
    weights: NDArray[np.float64] = np.minimum(1.0, np.sqrt(threshold / shares))
    return weights
