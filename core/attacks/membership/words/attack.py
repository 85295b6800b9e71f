"""Attacks on windows of words: fitted on an attacker's few labelled windows, then scoring any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.ranking import Ranking, curve
from core.attacks.membership.words.similarity import window_similarity
from core.attacks.membership.words.vectors import N_LIKE, WordVectors, centred, sampling_weights
from core.attacks.membership.words.windows import Windows
from core.specs import setting
from core.vectors import unit

__all__ = ["CentredWindows", "CosineWindows"]

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


def _area(scores: NDArray[np.float64], members: NDArray[np.bool_]) -> float:
    """Return the area under the curve of windows that have a score."""
    known = ~np.isnan(scores)
    false, true = curve(Ranking(scores[known], members[known]))
    return float(np.trapezoid(true, false))
