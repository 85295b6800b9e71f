"""Attacks that score whether word vectors were trained on a window of words (SR20, Alg. 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.ranking import Ranking, roc_curve
from leakscope.core.attacks.membership.words.windows import Windows
from leakscope.core.specs import setting
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
        """Build from numbered `words` and the `known` words, in the order of their vectors."""
        places = {word: i for i, word in enumerate(known)}
        rows = np.array([places.get(word, NO_VECTOR) for word in words], dtype=np.int64)
        return cls(vectors, rows)

    def only(self, is_used: NDArray[np.bool_]) -> WordVectors:
        """Return the same vectors, with numbered words that are not used treated as unknown."""
        return WordVectors(self.vectors, np.where(is_used, self.rows, NO_VECTOR))


def remove_frequency(
    vectors: NDArray[np.float32], n_directions: int, n_like: int = N_LIKE
) -> NDArray[np.float32]:
    """Return word vectors without frequency components, normalised to unit length.

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
    """Return the subsampling weight min(1, √(t / f)) for each frequency rank, by Zipf's law.

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


DIRECTIONS = (0, 2, 5, 10)
"""Numbers of strongest directions that are tried for removal."""

SAMPLING = (1e-3, 1e-4, 1e-5)
"""Thresholds t of `sampling_weights` that are tried; the first is what gensim trains with."""


_STEP = 20_000
"""Windows processed at a time, which bounds memory."""


def window_similarity(
    windows: Windows,
    units: NDArray[np.float32],
    rows: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the mean cosine of each window's centre word with its context words.

    Implements Song & Raghunathan (2020), §5.1 and Alg. 4: the score is the mean of
    Δ = {δ(v_{w_0}, v_{w_i}) : w_i ∈ C∖{w_0}}, δ being the cosine. Differs from the paper: nothing;
    it does not say what to do with words without a vector. They are left out of the mean, as are
    repetitions of the centre word. Another word that occurs twice counts twice.

    Parameters
    ----------
    units : ndarray of float32, shape (m, d)
        Unit vectors of the words that have one.
    rows : ndarray of int64, shape (n_words,)
        The row of `units` of each numbered word, NO_VECTOR if it has none.
    weights : ndarray of float64, shape (m,), optional
        The weight of each word as a context word; equal by default.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [-1, 1]; NaN where the centre has no vector, or no word around it has.
    """
    table = np.vstack([units, np.zeros_like(units[:1])])  # the last row is for NO_VECTOR
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
    """Return each window's mean cosine with the context words at each distance (n, n_distances).

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
    pairs = [
        windows.contexts[:, [half - distance, half + distance - 1]]
        for distance in range(1, half + 1)
    ]
    found = [
        window_similarity(Windows(windows.centres, pair, windows.documents), units, rows, weights)
        for pair in pairs
    ]
    return np.nan_to_num(np.column_stack(found))


@dataclass
class CosineWindows:
    """Scores windows by the mean cosine of the centre and context words (SR20, Alg. 4)."""

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Store the word vectors; nothing is learned from labelled windows."""
        self.words_ = words
        self.units_ = unit(words.vectors)
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return the mean cosine of each window; NaN where it has no two words with vectors."""
        return window_similarity(windows, self.units_, self.words_.rows)


@dataclass
class CentredWindows:
    """Scores windows by mean cosine after removing frequency components; rare words count more.

    Cosines of word vectors depend on frequency more than on co-occurrence. The number of removed
    directions and the weight of frequent words are chosen by the AUC on labelled windows. Ours; the
    paper has nothing like it.

    Attributes
    ----------
    n_directions_ : int
    sampling_ : float
        The chosen values.
    """

    n_like: int = setting(
        N_LIKE, "Words of similar frequency on each side whose mean is subtracted", low=1
    )

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Choose the directions to remove and the sampling threshold by AUC on labelled windows.

        Raises
        ------
        InvalidInputError
            All labelled windows are of one kind.
        """
        self.words_ = words
        n_most = min(words.vectors.shape)
        tables = {
            n: remove_frequency(words.vectors, n, self.n_like) for n in DIRECTIONS if n < n_most
        }
        best = -1.0
        for n_directions, sampling in product(tables, SAMPLING):
            self.units_, self.sampling_ = tables[n_directions], sampling
            scores = self.score(windows)
            known = ~np.isnan(scores)
            false, true = roc_curve(Ranking(scores[known], members[known]))
            area = float(np.trapezoid(true, false))
            if area > best:
                best, chosen = area, (n_directions, sampling)
        self.n_directions_, self.sampling_ = chosen
        self.units_ = tables[self.n_directions_]
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return each window's weighted mean cosine; NaN if it has no two words with vectors."""
        weights = sampling_weights(len(self.units_), self.sampling_)
        return window_similarity(windows, self.units_, self.words_.rows, weights)


@dataclass
class WeighedWindows(CentredWindows):
    """Scores windows by a logistic regression on the similarity at each distance from the centre.

    GloVe is trained on log X, X being a sum of 1 / distance: two rare words that co-occurred once,
    a few words apart, may become less similar than words that never did. A logistic regression on
    labelled windows learns that, and how it depends on the rank of the centre word. Ours.

    Attributes
    ----------
    coefficients_ : ndarray of float64, shape (n_words - 1,)
        Of the similarity at each distance, then of each times the centre's rank.
    """

    penalty: float = setting(1.0, "Strength of the ridge of the regression", low=1e-6, high=1e6)

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Choose the settings as `CentredWindows` does, then fit the regression.

        Raises
        ------
        InvalidInputError
            All labelled windows are of one kind.
        """
        from sklearn.linear_model import LogisticRegression  # slow to import

        super().fit(words, windows, members)
        known = ~np.isnan(super().score(windows))
        regression = LogisticRegression(C=1 / self.penalty, max_iter=1000)
        regression.fit(self._features(windows.take(known)), members[known])
        self.coefficients_ = regression.coef_[0]
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return each window's regression score; NaN if it has no two words with vectors."""
        found = super().score(windows)
        known = ~np.isnan(found)
        if hasattr(self, "coefficients_"):
            found[known] = self._features(windows.take(known)) @ self.coefficients_
        return found

    def _features(self, windows: Windows) -> NDArray[np.float64]:
        """Return each window's similarity by distance, alone and times the centre word's rank."""
        weights = sampling_weights(len(self.units_), self.sampling_)
        rows = self.words_.rows
        found = distance_similarities(windows, self.units_, rows, weights)
        rank = np.log1p(rows[windows.centres]) / np.log1p(len(self.units_)) - 0.5
        return np.column_stack([found, found * rank[:, None]])
