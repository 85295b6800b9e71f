"""Attacks on windows of words: fitted on an attacker's few labelled windows, then scoring any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.ranking import Ranking, curve
from core.attacks.membership.words.similarity import distance_similarities, window_similarity
from core.attacks.membership.words.vectors import N_LIKE, WordVectors, centred, sampling_weights
from core.attacks.membership.words.windows import Windows
from core.specs import setting
from core.vectors import unit

__all__ = ["CentredWindows", "CosineWindows", "WeighedWindows"]

DIRECTIONS = (0, 2, 5, 10)
"""Numbers of strongest directions that are tried."""

SAMPLING = (1e-3, 1e-4, 1e-5)
"""Thresholds t of `sampling_weights` that are tried; the first is what gensim trains with."""


@dataclass
class CosineWindows:
    """The mean cosine of the centre word and those around (Song & Raghunathan 2020, Alg. 4)."""

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Take the vectors; nothing is learned of labelled windows."""
        self.words_ = words
        self.units_ = unit(words.vectors)
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return the score of each window; NaN where it has no two words with vectors."""
        return window_similarity(windows, self.units_, self.words_.rows)


@dataclass
class CentredWindows:
    """The same of vectors less what words of like frequency share, rare words around counting more.

    Cosines of word vectors say how frequent two words are before they say where the words stood.
    How many directions are taken off, and how much frequent words count, is chosen by the area
    under the curve of the labelled windows. Ours; the paper has nothing like it.

    Attributes
    ----------
    n_directions_ : int
    sampling_ : float
        What was chosen.
    """

    n_like: int = setting(N_LIKE, "Words of like frequency whose mean is taken off, a side", low=1)

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Choose on labelled windows.

        Raises
        ------
        InvalidInputError
            All labelled windows are of one kind.
        """
        self.words_ = words
        n_most = min(words.vectors.shape)
        tables = {n: centred(words.vectors, n, self.n_like) for n in DIRECTIONS if n < n_most}
        best = -1.0
        for n_directions, sampling in product(tables, SAMPLING):
            self.units_, self.sampling_ = tables[n_directions], sampling
            area = _area(self.score(windows), members)
            if area > best:
                best, chosen = area, (n_directions, sampling)
        self.n_directions_, self.sampling_ = chosen
        self.units_ = tables[self.n_directions_]
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return the score of each window; NaN where it has no two words with vectors."""
        weights = sampling_weights(len(self.units_), self.sampling_)
        return window_similarity(windows, self.units_, self.words_.rows, weights)


@dataclass
class WeighedWindows(CentredWindows):
    """The same at each distance from the centre, weighed as labelled windows teach.

    GloVe is taught log X, X being a sum of 1 / distance: two rare words that stood together once, a
    few words apart, may become less alike than words that never met. A logistic regression on
    labelled windows finds that out, and how it depends on the rank of the centre word. Ours.

    Attributes
    ----------
    coefficients_ : ndarray of float64, shape (n_words - 1,)
        Of the similarity at each distance, then of each times the centre's rank.
    """

    penalty: float = setting(1.0, "Strength of the ridge of the regression", low=1e-6, high=1e6)

    def fit(self, words: WordVectors, windows: Windows, members: NDArray[np.bool_]) -> Self:
        """Choose as `CentredWindows` does, then learn the weights.

        Raises
        ------
        InvalidInputError
            All labelled windows are of one kind.
        """
        from sklearn.linear_model import LogisticRegression  # loading it takes a second

        super().fit(words, windows, members)
        known = ~np.isnan(super().score(windows))
        regression = LogisticRegression(C=1 / self.penalty, max_iter=1000)
        regression.fit(self._features(windows.take(known)), members[known])
        self.coefficients_ = regression.coef_[0]
        return self

    def score(self, windows: Windows) -> NDArray[np.float64]:
        """Return the score of each window; NaN where it has no two words with vectors."""
        found = super().score(windows)
        known = ~np.isnan(found)
        if hasattr(self, "coefficients_"):
            found[known] = self._features(windows.take(known)) @ self.coefficients_
        return found

    def _features(self, windows: Windows) -> NDArray[np.float64]:
        weights = sampling_weights(len(self.units_), self.sampling_)
        rows = self.words_.rows
        found = distance_similarities(windows, self.units_, rows, weights)
        rank = np.log1p(rows[windows.centres]) / np.log1p(len(self.units_)) - 0.5
        return np.column_stack([found, found * rank[:, None]])


def _area(scores: NDArray[np.float64], members: NDArray[np.bool_]) -> float:
    """Return the area under the curve of windows that have a score."""
    known = ~np.isnan(scores)
    false, true = curve(Ranking(scores[known], members[known]))
    return float(np.trapezoid(true, false))
