"""Separate what a vector reveals through the text's topic from the rest, such as style.

A vector is the sum of two parts: the part that a linear map predicts from the content words of its
text (its topic), and the residual (the rest: function words, punctuation, order, style, and
whatever else no linear map of words reaches). A linear probe is linear in both, so the contribution
of each part to its decision is exact. The size of the first part depends on the texts that the map
was learned from; `r2_` is the share of the variance that it explains.
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

from leakscope.core.attacks.attributes.attack import check_fitted, check_vectors
from leakscope.core.attacks.attributes.program import Linear
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import setting
from leakscope.core.text import STOP_WORDS, words

_PENALTIES = (0.1, 1.0, 10.0)
_LEAST = 20
"""The fewest texts that a map is learned from."""

Floats = NDArray[np.float32]


def content_words(text: str) -> list[str]:
    """Return the content words of a text: all but stop words, names and numbers included.

    Examples
    --------
    >>> content_words("And then she went to London!")
    ['went', 'london']
    """
    return [word for word in words(text) if word not in STOP_WORDS]


@dataclass
class TopicMap:
    """Ridge regression from the content words of a text (tf-idf) to its vector.

    x̂ = μ + A t(x), t being the tf-idf of content words, and A = argmin ‖X - μ - T A‖² + ρ ‖A‖².
    The penalty ρ is the one of three that best predicts a held-out tenth of the texts, by group if
    they have groups. A ridge shrinks its predictions towards the mean; the shrinkage is undone by
    the factor that, on the same tenth, leaves the residual uncorrelated with the prediction.
    """

    max_words: int = setting(2048, "Content words counted, the most frequent first", low=2)

    def fit(self, texts: Sequence[str], vectors: Any, groups: Sequence[str] | None = None) -> Self:
        """Learn the map from texts and their dense vectors (n, d); labels are not used.

        Raises
        ------
        InvalidInputError
            Fewer than 20 texts, or no content word occurs in two of them.
        """
        if len(texts) < _LEAST:
            raise InvalidInputError(
                f"Learning a text's topic needs at least {_LEAST} texts, got {len(texts)}."
            )
        vectors = np.asarray(check_vectors(vectors, len(texts)), np.float64)
        self.counter_ = TfidfVectorizer(
            analyzer=content_words, max_features=self.max_words, min_df=2, dtype=np.float64
        )
        try:
            counted = sparse.csr_array(self.counter_.fit_transform(texts))
        except ValueError as error:
            raise InvalidInputError(
                "No content word occurs in two of the texts. Give more texts."
            ) from error
        is_held = _validation_mask(len(texts), groups)
        centre, maps = _fit_ridge(counted[~is_held], vectors[~is_held], _PENALTIES)
        away = vectors[is_held] - centre
        gains = [_rescaling_factor(counted[is_held] @ a, away) for a in maps]
        explained = [
            _r2(gain * (counted[is_held] @ a), away) for gain, a in zip(gains, maps, strict=True)
        ]
        best = int(np.argmax(explained))
        self.penalty_, self.r2_ = _PENALTIES[best], float(explained[best])
        self.centre_, (found,) = _fit_ridge(counted, vectors, (self.penalty_,))
        self.map_ = gains[best] * found
        return self

    def predict(self, texts: Sequence[str]) -> Floats:
        """Predict the vectors x̂ (n, d) of texts from their content words."""
        check_fitted(self, "map_")
        found: Floats = (self.centre_ + self.counter_.transform(texts) @ self.map_).astype("f4")
        return found


def _group_numbers(n: int, groups: Sequence[str] | None) -> NDArray[np.intp]:
    """Return the group number of each of n texts; without groups, each text is its own."""
    if groups is None:
        return np.arange(n)
    found: NDArray[np.intp] = np.unique(np.asarray(groups), return_inverse=True)[1]
    return found


def _validation_mask(n: int, groups: Sequence[str] | None) -> NDArray[np.bool_]:
    """Draw a mask of a tenth of n texts, in whole groups; at least one text and not all."""
    units = _group_numbers(n, groups)
    order = np.random.default_rng(0).permutation(int(units.max()) + 1)
    if len(order) == 1:  # one group: its texts stand for themselves
        return _validation_mask(n, None)
    chosen: NDArray[np.bool_] = np.isin(units, order[: max(1, len(order) // 10)])
    return chosen


def _fit_ridge(
    counted: Any, vectors: NDArray[np.float64], penalties: Sequence[float]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Fit a ridge map (TᵀT + ρ I)⁻¹ Tᵀ (X - μ) for each penalty ρ; return mean vector and maps."""
    centre = vectors.mean(0)
    right = counted.T @ (vectors - centre)
    gram = (counted.T @ counted).toarray()
    maps = []
    for penalty in penalties:
        raised = gram + penalty * np.eye(len(gram))
        maps.append(linalg.solve(raised, right, assume_a="pos", overwrite_a=True))
    return centre, maps


def _rescaling_factor(predicted: NDArray[np.float64], away: NDArray[np.float64]) -> float:
    """Return the least-squares factor, within [1, 2], that fits predictions to centred vectors."""
    squared = float((predicted**2).sum())
    return float(np.clip((predicted * away).sum() / squared, 1.0, 2.0)) if squared else 1.0


def _r2(predicted: NDArray[np.float64], away: NDArray[np.float64]) -> float:
    """Return R², the share of the variance that predictions explain; both arrays are centred."""
    return 1.0 - float(((away - predicted) ** 2).sum()) / max(float((away**2).sum()), 1e-12)


def cross_fitted(
    texts: Sequence[str], vectors: Any, groups: Sequence[str] | None = None
) -> tuple[Floats, float]:
    """Predict each text's vector by a map fitted on other groups; return the predictions and R².

    Texts are split in two by group; the map of each half predicts the other.
    """
    units = _group_numbers(len(texts), groups)
    order = np.random.default_rng(1).permutation(int(units.max()) + 1)
    is_first = np.isin(units, order[: len(order) // 2])
    vectors = np.asarray(vectors, np.float32)
    if is_first.all() or not is_first.any():
        raise InvalidInputError("Texts of at least two groups are needed, got one.")
    found = np.zeros_like(vectors)
    for own in (is_first, ~is_first):
        known, asked = (np.flatnonzero(rows).tolist() for rows in (~own, own))
        of = None if groups is None else [groups[i] for i in known]
        fitted = TopicMap().fit([texts[i] for i in known], vectors[known], of)
        found[asked] = fitted.predict([texts[i] for i in asked])
    centre = vectors.mean(0, dtype=np.float64)
    return found, _r2(found - centre, vectors - centre)


@dataclass(frozen=True)
class LabelEvidence:
    """The evidence for one label against the mean of all labels, in nats of log-odds.

    Attributes
    ----------
    label : int
        Its number.
    topic, rest : float
        The contribution of the part that content words predict, and that of the rest.
    before : float
        The prior evidence, from the classifier's bias.
    """

    label: int
    topic: float
    rest: float
    before: float

    @property
    def topic_share(self) -> float:
        """The topic's share of the evidence for the label; NaN if neither part supports it.

        A part with evidence against the label counts as 0.
        """
        spoken = max(self.topic, 0.0) + max(self.rest, 0.0)
        return max(self.topic, 0.0) / spoken if spoken else float("nan")


def explain_label(linear: Linear, vector: Floats, predicted: Floats, label: int) -> LabelEvidence:
    """Split a label's score for a vector, less the mean score, into topic, rest and bias.

    (w_s - w̄)·(x̂ - μ) is the topic's and (w_s - w̄)·(x - x̂) the rest's; with (b_s - b̄) they add up
    to the score of s minus the mean score.

    Parameters
    ----------
    linear : Linear
        Of dense vectors.
    predicted : ndarray of float32, shape (d,)
        x̂, of `TopicMap.predict`.
    """
    own = (linear.weights[:, label] - linear.weights.mean(1)) * linear.scale
    return LabelEvidence(
        label,
        float(own @ (predicted - linear.centre)),
        float(own @ (vector - predicted)),
        float(linear.bias[label] - linear.bias.mean()),
    )
