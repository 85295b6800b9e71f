"""Evidence for single words: how the vector of a word list changes with and without a word."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge

from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import Encoder, Vectors

RIDGES = (0.01, 0.1)
"""ρ of the joint solutions, as shares of the mean squared effect."""

_N_FEATURES = 11 + 2 * len(RIDGES)
"""Columns of `features`."""


@dataclass(frozen=True)
class BagMap:
    """A linear map from the vector of a word list to that of the sentence it came from.

    A list of words is not a sentence, and their vectors differ in a way that is the same for all
    texts to a large part; least squares takes that part away.
    """

    weight: NDArray[np.float32]
    intercept: NDArray[np.float32]

    @classmethod
    def fit(cls, bags: Vectors, sentences: Vectors) -> BagMap:
        """Fit the map from (n, d) vectors of word lists to (n, d) vectors of their sentences."""
        model = Ridge(alpha=1.0).fit(bags, sentences)
        return cls(model.coef_.astype(np.float32), model.intercept_.astype(np.float32))

    def __call__(self, bags: Vectors) -> Vectors:
        """Map vectors of word lists to unit vectors of sentences, (n, d)."""
        mapped = bags @ self.weight.T + self.intercept
        unit: Vectors = mapped / np.maximum(np.linalg.norm(mapped, axis=1, keepdims=True), 1e-12)
        return unit

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the map's weight and intercept as arrays to store, by name."""
        return {"bag_map.weight": self.weight, "bag_map.intercept": self.intercept}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> BagMap:
        """Build the map from the arrays that `arrays` returned."""
        return cls(
            np.asarray(arrays["bag_map.weight"], np.float32),
            np.asarray(arrays["bag_map.intercept"], np.float32),
        )


@dataclass(frozen=True)
class Toggles:
    """The search state of one vector: a pool of words, the chosen ones, beliefs and evidence.

    The evidence (`gain`, `joint`, `aligned`) is about the words in `tried`, positions in the pool.
    """

    vector: NDArray[np.float32]
    words: tuple[str, ...]
    belief: NDArray[np.float64]
    prior: NDArray[np.float32]
    chosen: NDArray[np.bool_]
    tail_mass: float
    """Expected number of true words outside the pool."""
    n_queries: int = 0
    tried: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    cosine: float = 0.0
    """Of the mapped vector of the chosen list with the vector."""
    gain: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """Cosine with the word minus cosine without it."""
    joint: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, len(RIDGES))))
    """How much of the word's effect explains what is missing, all words taken together."""
    aligned: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """Cosine between the word's effect and what is missing."""

    def choose(self, belief: NDArray[np.float64], count: int) -> Toggles:
        """Return a copy of the state with new beliefs and the `count` likeliest words chosen."""
        chosen = np.zeros(len(self.words), dtype=bool)
        chosen[np.argsort(-belief, kind="stable")[:count]] = True
        return replace(self, belief=belief, chosen=chosen)

    def try_likeliest(self, n_candidates: int) -> Toggles:
        """Return a copy of the state whose `n_candidates` most probable words are to be tried."""
        return replace(self, tried=np.argsort(-self.belief, kind="stable")[:n_candidates])

    def lists(self) -> list[str]:
        """Return the texts to encode: the chosen words, then these with each tried word toggled."""
        ranked = np.argsort(-self.belief, kind="stable")

        def text(mask: NDArray[np.bool_]) -> str:
            """Return the pool's words in the mask as a text, most probable first."""
            return " ".join(self.words[i] for i in ranked if mask[i])

        toggled = []
        for i in self.tried:
            mask = self.chosen.copy()
            mask[i] = not mask[i]
            # The empty list cannot be encoded; a lone word is compared with itself: no evidence.
            toggled.append(text(mask) or text(self.chosen))
        return [text(self.chosen), *toggled]

    def weigh(self, mapped: Vectors) -> Toggles:
        """Compute the evidence from mapped vectors (K + 1, d) of `lists`; return a state with it.

        With E_w the change that toggling w makes and r what is missing (the vector minus that of
        the chosen list), `joint` solves min_a ‖r − Σ_w a_w E_w‖² + ρ‖a‖² for each ridge ρ: a
        Gauss-Newton step, in which words of like meaning share the credit that each alone would
        claim. Signs are turned so that positive speaks for the word.
        """
        effect = (mapped[1:] - mapped[0]).astype(np.float64)
        missing = (self.vector - mapped[0]).astype(np.float64)
        sign = np.where(self.chosen[self.tried], -1.0, 1.0)
        pull = effect @ missing
        gram = effect @ effect.T
        scale = max(np.trace(gram) / len(gram), 1e-12)
        solved = [
            np.linalg.solve(gram + ridge * scale * np.eye(len(gram)), pull) for ridge in RIDGES
        ]
        size = np.linalg.norm(effect, axis=1) * np.linalg.norm(missing)
        return replace(
            self,
            cosine=float(mapped[0] @ self.vector),
            gain=sign * (effect @ self.vector),
            joint=sign[:, None] * np.stack(solved, axis=1),
            aligned=sign * pull / np.maximum(size, 1e-12),
        )


def toggle_candidates(encoder: Encoder, bag_map: BagMap, block: list[Toggles]) -> list[Toggles]:
    """Encode each state's list with each tried word toggled; return the states with evidence."""
    lists = [step.lists() for step in block]
    unique = list(dict.fromkeys(text for texts in lists for text in texts))
    row = {text: i for i, text in enumerate(unique)}
    mapped = bag_map(encoder.encode(unique))
    return [
        replace(step, n_queries=step.n_queries + len(set(texts))).weigh(
            mapped[[row[text] for text in texts]]
        )
        for step, texts in zip(block, lists, strict=True)
    ]


def features(step: Toggles) -> NDArray[np.float64]:
    """Compute the judge's features (K, 15) of the K tried words of one search state.

    The gain of a word shrinks as the list grows, so it is multiplied by the length.
    """
    p = np.clip(step.belief[step.tried], 1e-6, 1 - 1e-6)
    logit = np.log(p / (1 - p))
    length = max(int(step.chosen.sum()), 1)
    gain = step.gain * (length + 1) * 10
    inside = step.chosen[step.tried].astype(np.float64)
    ones = np.ones_like(p)
    columns = [
        logit,
        gain,
        inside,
        gain * inside,
        logit * inside,
        step.prior[step.tried],
        step.cosine * ones,
        gain * step.cosine,
        np.log(length) * ones,
        step.aligned,
        step.aligned * inside,
    ]
    for solved in step.joint.T:
        columns += [solved, solved * inside]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class WordJudge:
    """A logistic regression from belief and evidence to P(word in text)."""

    weights: NDArray[np.float64]
    intercept: float

    @classmethod
    def fit(cls, rows: NDArray[np.float64], right: NDArray[np.bool_]) -> WordJudge:
        """Fit the regression on (m, 15) features of words and whether each is in its text."""
        scale = rows.std(0) + 1e-9
        model = LogisticRegression(C=10.0, max_iter=500).fit(rows / scale, right)
        return cls(model.coef_[0] / scale, float(model.intercept_[0]))

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(word in text) for each row of features, (m,)."""
        belief: NDArray[np.float64] = 1 / (1 + np.exp(-(rows @ self.weights + self.intercept)))
        return belief

    def to_list(self) -> list[float]:
        """Return weights and intercept as a list, to store."""
        return [*self.weights.tolist(), self.intercept]

    @classmethod
    def from_list(cls, values: list[float]) -> WordJudge:
        """Build the judge from what `to_list` returned.

        Raises
        ------
        ArtifactError
            It is not a number for each feature, and one more.
        """
        numbers = np.array(values, np.float64)
        if numbers.shape != (_N_FEATURES + 1,) or not np.isfinite(numbers).all():
            raise ArtifactError(
                f"A judge of the search has {numbers.size} numbers, not {_N_FEATURES + 1} finite "
                "ones. Train the attack again."
            )
        return cls(numbers[:-1], float(numbers[-1]))
