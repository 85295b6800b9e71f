"""GloVe: word vectors from word co-occurrence counts (Pennington et al. 2014)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.compiled import njit
from leakscope.core.encoders.fitted import Arrays, pack_words
from leakscope.core.encoders.word_average import WordAverage
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress
from leakscope.core.specs import setting
from leakscope.core.text import words


@dataclass
class GloVeEncoder(WordAverage):
    """The mean of GloVe vectors, with the settings of Song & Raghunathan (2020), §6.1.

    Implements Pennington et al. (2014), Eq. 8: minimise Σ_ij f(X_ij) (w_i·w̃_j + b_i + b̃_j −
    log X_ij)², f(x) = min(1, (x / x_max)^(3/4)), by AdaGrad; the vectors are w + w̃. X_ij adds
    1/distance for each time that j occurs within the window of i. Differs from the paper:
    nothing. No maintained library trains GloVe, hence this implementation.
    """

    vector_size: int = setting(100, "Dimensions", low=1, high=5000, paper="SR20")
    window: int = setting(5, "Context words on each side of a word", low=1, high=100, paper="SR20")
    learning_rate: float = setting(
        0.05, "Learning rate of AdaGrad", low=1e-6, high=1.0, paper="SR20"
    )
    epochs: int = setting(50, "Passes over the pairs", low=1, paper="SR20")
    x_max: float = setting(100.0, "Count above which pairs have full weight", low=1.0)
    min_count: int = setting(2, "Minimum number of occurrences of a word", low=1)
    seed: int = setting(0, "Random seed of the initial weights and the order", low=0)
    name: str = field(default="glove", init=False)

    def learn(self, texts: list[str], on_progress: OnProgress) -> Arrays:
        """Count word co-occurrences in texts, train word vectors, and return words and vectors."""
        sentences = [words(text) for text in texts]
        counted = Counter(word for sentence in sentences for word in sentence)
        known = [
            w
            for w, n in sorted(counted.items(), key=lambda c: (-c[1], c[0]))
            if n >= self.min_count
        ]
        index = {word: i for i, word in enumerate(known)}
        pairs = cooccurrences(
            [[index[w] for w in s if w in index] for s in sentences], len(known), self.window
        )
        if pairs.nnz == 0:
            raise InvalidInputError("No two known words occur together. Provide more texts.")
        return {"words": pack_words(known), "vectors": self._train(pairs, on_progress)}

    def _train(self, pairs: sparse.coo_array, on_progress: OnProgress) -> NDArray[np.float32]:
        """Train word vectors on (words, words) co-occurrence counts by AdaGrad; return them."""
        rng = np.random.default_rng(self.seed)
        n, d = pairs.shape[0], self.vector_size
        # Row i holds the vector and, last, the bias; words as centres, then words as context.
        weights = ((rng.random((2, n, d + 1)) - 0.5) / d).astype(np.float32)
        squares = np.ones_like(weights)
        counts = pairs.data.astype(np.float32)
        importance = np.minimum(1, (counts / self.x_max) ** 0.75).astype(np.float32)
        for epoch in range(self.epochs):
            order = rng.permutation(len(counts))
            loss = adagrad_epoch(
                pairs.row[order],
                pairs.col[order],
                np.log(counts)[order],
                importance[order],
                weights,
                squares,
                np.float32(self.learning_rate),
            )
            on_progress((epoch + 1) / self.epochs, f"Epoch {epoch + 1}, loss {loss:.4f}")
        summed: NDArray[np.float32] = weights[0, :, :-1] + weights[1, :, :-1]
        return summed


def cooccurrences(
    sentences: Sequence[Sequence[int]], n_words: int, window: int
) -> sparse.coo_array:
    """Count co-occurrences in sentences of word numbers: X_ij = Σ 1/distance within a window.

    Examples
    --------
    >>> cooccurrences([[0, 1, 2]], 3, 2).toarray().tolist()
    [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    """
    lengths = np.fromiter((len(s) for s in sentences), np.int64, len(sentences))
    ids = np.fromiter((i for s in sentences for i in s), np.int64, int(lengths.sum()))
    place = np.repeat(np.arange(len(lengths)), lengths)
    total = sparse.csr_array((n_words, n_words), dtype=np.float64)
    for distance in range(1, window + 1):
        is_same = place[distance:] == place[:-distance]
        left, right = ids[:-distance][is_same], ids[distance:][is_same]
        share = np.full(len(left), 1 / distance)
        total += sparse.csr_array((share, (left, right)), shape=total.shape)
    return sparse.coo_array(total + total.T)


@njit(nogil=True, cache=True)
def adagrad_epoch(rows, columns, logs, importance, weights, squares, rate):  # type: ignore[no-untyped-def]
    """Update weights and squared gradients in place, once over all pairs; return the mean loss.

    Parameters
    ----------
    rows, columns : int array (P,)
    logs, importance : float32 array (P,)
        log X and f(X).
    weights, squares : float32 array (2, V, d + 1)
        Vectors with their bias last, for centres and context; sums of squared gradients.
    """
    d = weights.shape[2] - 1
    total = 0.0
    for k in range(len(rows)):
        i, j = rows[k], columns[k]
        error = weights[0, i, d] + weights[1, j, d] - logs[k]
        for m in range(d):
            error += weights[0, i, m] * weights[1, j, m]
        total += importance[k] * error * error
        pull = importance[k] * error
        for m in range(d):
            left, right = pull * weights[1, j, m], pull * weights[0, i, m]
            weights[0, i, m] -= rate * left / np.sqrt(squares[0, i, m])
            weights[1, j, m] -= rate * right / np.sqrt(squares[1, j, m])
            squares[0, i, m] += left * left
            squares[1, j, m] += right * right
        weights[0, i, d] -= rate * pull / np.sqrt(squares[0, i, d])
        weights[1, j, d] -= rate * pull / np.sqrt(squares[1, j, d])
        squares[0, i, d] += pull * pull
        squares[1, j, d] += pull * pull
    return total / len(rows)
