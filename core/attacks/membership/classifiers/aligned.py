"""What attacks share that ask shadow models about the very samples of the target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.features import confidence, scaled_logit
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.errors import InvalidInputError, NotFittedError

__all__ = ["Aligned"]


class Aligned:
    """An attack for which the n-th sample of the shadows is the n-th of the target."""

    labels_: NDArray[np.int64]

    def check(self, target: Outputs) -> None:
        """Check that the attack knows the samples.

        Raises
        ------
        NotFittedError
            It knows none.
        InvalidInputError
            It knows others.
        """
        name = type(self).__name__
        if not hasattr(self, "labels_"):
            raise NotFittedError(f"{name} knows no shadow models: call fit.")
        if not np.array_equal(self.labels_, target.labels):
            raise InvalidInputError(
                f"{name} compares each sample with what shadow models say of the same one, and "
                "the target's samples have other labels or another number. Give the shadow "
                "models the target's samples, in the same order."
            )

    def logit_of(self, target: Outputs) -> NDArray[np.float64]:
        """Return φ of each sample, the samples being checked."""
        self.check(target)
        return scaled_logit(target.probabilities, target.labels)

    @staticmethod
    def agreed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what all shadow models say alike of each sample, NaN where they differ.

        Parameters
        ----------
        values : ndarray (n_models, n)
        """
        found: NDArray[np.float64] = np.where((values == values[0]).all(axis=0), values[0], np.nan)
        return found

    @staticmethod
    def logits_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return φ of each model and sample."""
        return np.stack([scaled_logit(m.probabilities, m.labels) for m in _each(shadows)])

    @staticmethod
    def confidences_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return the probability of the true class of each model and sample."""
        return np.stack([confidence(m.probabilities, m.labels) for m in _each(shadows)])


def _each(shadows: Shadows) -> Iterator[Outputs]:
    """Yield the models one by one: as float64, all of them may not fit the memory."""
    return (shadows.model(number) for number in range(shadows.n_models))
