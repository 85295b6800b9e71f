"""When multi-set prediction should stop: how likely each named word is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

__all__ = ["StepCalibration"]


@dataclass(frozen=True)
class StepCalibration:
    """P(the word named at step t is right), a logistic regression on log p_t and log t.

    The network's softmax shares its mass among all words left, so p_t falls short of the
    probability of being right and falls with t; validation texts set it straight.
    """

    weights: tuple[float, float, float]
    intercept: float

    @classmethod
    def fit(cls, probability: NDArray[Any], is_right: NDArray[np.bool_]) -> StepCalibration:
        """Fit on (n, n_steps) step probabilities and whether each named word was right."""
        x, y = _features(probability).reshape(-1, 3), is_right.ravel()
        if y.min() == y.max():
            return cls((0.0, 0.0, 0.0), 20.0 if y[0] else -20.0)
        model = LogisticRegression(C=100.0).fit(x, y)
        a, b, c = (float(v) for v in model.coef_[0])
        return cls((a, b, c), float(model.intercept_[0]))

    def __call__(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Return P(right) for each step, shape as given."""
        z = _features(probability) @ np.array(self.weights) + self.intercept
        calibrated: NDArray[np.float64] = 1 / (1 + np.exp(-z))
        return calibrated


def _features(probability: NDArray[Any]) -> NDArray[np.float64]:
    p = np.log(np.clip(np.asarray(probability, dtype=np.float64), 1e-9, 1.0))
    step = np.log(np.arange(1, p.shape[1] + 1))
    return np.stack([p, np.broadcast_to(step, p.shape), p * step], axis=-1)
