"""Which of a vector's information tells the label: what the text is about, or the rest.

A vector is taken apart in two that add up to it: the part that the content words of its text
predict by a linear map (its topic), and what they do not predict (the rest: function words,
punctuation, order, how things are said, and whatever else no linear map of words reaches). A linear
probe is linear in both, so that what each part adds to its decision is told exactly. How much of a
vector the first part is hangs on the texts that the map was learned from; `r2_` tells it.
docs/decisions/0018-topic-or-style.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from core.attacks.attributes.attack import check_fitted, check_vectors
from core.attacks.attributes.program import Linear
from core.errors import InvalidInputError
from core.specs import setting
from core.text import STOP_WORDS, words

__all__ = ["TopicMap", "Why", "content_words", "cross_fitted", "why"]

_PENALTIES = (0.1, 1.0, 10.0)
_LEAST = 20
"""Texts that a map is learned from at least."""

Floats = NDArray[np.float32]


def content_words(text: str) -> list[str]:
    """Return what a text is about: its words but for stop words; names and numbers are content.

    Examples
    --------
    >>> content_words("And then she went to London!")
    ['went', 'london']
    """
    return [word for word in words(text) if word not in STOP_WORDS]


@dataclass
class TopicMap:
    """The linear map from the content words of a text to its vector, by ridge regression.

    x̂ = μ + A t(x), t being the tf-idf of content words, and A = argmin ‖X - μ - T A‖² + ρ ‖A‖².
    The penalty ρ is the one of three that predicts a tenth of the texts best, by groups where they
    have groups. A ridge draws what it predicts towards the mean; on the same tenth it is drawn back
    by the factor that leaves the rest uncorrelated with it.
    """

    max_words: int = setting(2048, "Content words counted, the most frequent first", low=2)

    def fit(self, texts: Sequence[str], vectors: Any, groups: Sequence[str] | None = None) -> Self:
        """Learn from texts and their dense vectors (n, d); no label is looked at.

        Raises
        ------
        InvalidInputError
            Fewer than 20 texts, or none of them has a content word twice.
        """
        if len(texts) < _LEAST:
            raise InvalidInputError(
                f"What texts are about is learned from {_LEAST} texts at least, got {len(texts)}."
            )
        vectors = np.asarray(check_vectors(vectors, len(texts)), np.float64)
        self.counter_ = TfidfVectorizer(
            analyzer=content_words, max_features=self.max_words, min_df=2, dtype=np.float64
        )
        try:
            counted = sparse.csr_array(self.counter_.fit_transform(texts))
        except ValueError as error:
            raise InvalidInputError(
                "No content word stands in two of the texts. Give more texts."
            ) from error
        is_held = _held(len(texts), groups)
        centre, maps = _ridge(counted[~is_held], vectors[~is_held], _PENALTIES)
        away = vectors[is_held] - centre
        gains = [_gain(counted[is_held] @ a, away) for a in maps]
        explained = [_r2(gain * (counted[is_held] @ a), away)
                     for gain, a in zip(gains, maps, strict=True)]  # fmt: skip
        best = int(np.argmax(explained))
        self.penalty_, self.r2_ = _PENALTIES[best], float(explained[best])
        self.centre_, (found,) = _ridge(counted, vectors, (self.penalty_,))
        self.map_ = gains[best] * found
        return self

    def predict(self, texts: Sequence[str]) -> Floats:
        """Return x̂, (n, d): what the content words tell of the vectors."""
        check_fitted(self, "map_")
        found: Floats = (self.centre_ + self.counter_.transform(texts) @ self.map_).astype("f4")
        return found


def _units(n: int, groups: Sequence[str] | None) -> NDArray[np.intp]:
    """Return the number of each text's group; each is one of its own without groups."""
    if groups is None:
        return np.arange(n)
    found: NDArray[np.intp] = np.unique(np.asarray(groups), return_inverse=True)[1]
    return found


def _held(n: int, groups: Sequence[str] | None) -> NDArray[np.bool_]:
    """Return a tenth of the texts, of whole groups; at least one and not all."""
    units = (
        np.arange(n) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    order = np.random.default_rng(0).permutation(int(units.max()) + 1)
    if len(order) == 1:  # one group: its texts stand for themselves
        return _held(n, None)
    chosen: NDArray[np.bool_] = np.isin(units, order[: max(1, len(order) // 10)])
    return chosen


def _ridge(
    counted: Any, vectors: NDArray[np.float64], penalties: Sequence[float]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Return the mean vector and (TᵀT + ρ I)⁻¹ Tᵀ (X - μ) for each penalty."""
    centre = vectors.mean(0)
    right = counted.T @ (vectors - centre)
    gram = (counted.T @ counted).toarray()
    maps = []
    for penalty in penalties:
        raised = gram + penalty * np.eye(len(gram))
        maps.append(linalg.solve(raised, right, assume_a="pos", overwrite_a=True))
    return centre, maps


def _gain(predicted: NDArray[np.float64], away: NDArray[np.float64]) -> float:
    """Return the factor by which predictions come nearest, both less the mean; from 1 to 2."""
    squared = float((predicted**2).sum())
    return float(np.clip((predicted * away).sum() / squared, 1.0, 2.0)) if squared else 1.0


def _r2(predicted: NDArray[np.float64], away: NDArray[np.float64]) -> float:
    """Return the share of the variance that is predicted; both arrays are less the mean."""
    return 1.0 - float(((away - predicted) ** 2).sum()) / max(float((away**2).sum()), 1e-12)


def cross_fitted(
    texts: Sequence[str], vectors: Any, groups: Sequence[str] | None = None
) -> tuple[Floats, float]:
    """Return x̂ of each text by a map that was learned from other groups, and the share explained.

    Texts are parted in two by group; the map of each half predicts the other.
    """
    units = _units(len(texts), groups)
    order = np.random.default_rng(1).permutation(int(units.max()) + 1)
    is_first = np.isin(units, order[: len(order) // 2])
    vectors = np.asarray(vectors, np.float32)
    if is_first.all() or not is_first.any():
        raise InvalidInputError("Texts of two groups at least are taken apart, got one.")
    found = np.zeros_like(vectors)
    for own in (is_first, ~is_first):
        known, asked = (np.flatnonzero(rows).tolist() for rows in (~own, own))
        of = None if groups is None else [groups[i] for i in known]
        fitted = TopicMap().fit([texts[i] for i in known], vectors[known], of)
        found[asked] = fitted.predict([texts[i] for i in asked])
    centre = vectors.mean(0, dtype=np.float64)
    return found, _r2(found - centre, vectors - centre)


@dataclass(frozen=True)
class Why:
    """What speaks for one label against the mean of all, in nats of log-odds.

    Attributes
    ----------
    label : int
        Its number.
    topic, rest : float
        What the part of the vector that content words predict adds, and what the rest adds.
    before : float
        What speaks for it before the vector is looked at.
    """

    label: int
    topic: float
    rest: float
    before: float

    @property
    def topic_share(self) -> float:
        """Share of what speaks for the label that is its topic; NaN where neither part does.

        A part that speaks against it counts nothing.
        """
        spoken = max(self.topic, 0.0) + max(self.rest, 0.0)
        return max(self.topic, 0.0) / spoken if spoken else float("nan")


def why(linear: Linear, vector: Floats, predicted: Floats, label: int) -> Why:
    """Return what each part of a vector (d,) adds to a label's score over the mean of all labels.

    (w_s - w̄)·(x̂ - μ) is the topic's and (w_s - w̄)·(x - x̂) the rest's; with (b_s - b̄) they add up
    to what the score of s stands above the mean score.

    Parameters
    ----------
    linear : Linear
        Of dense vectors.
    predicted : ndarray of float32, shape (d,)
        x̂, of `TopicMap.predict`.
    """
    own = (linear.weights[:, label] - linear.weights.mean(1)) * linear.scale
    return Why(
        label,
        float(own @ (predicted - linear.centre)),
        float(own @ (vector - predicted)),
        float(linear.bias[label] - linear.bias.mean()),
    )
