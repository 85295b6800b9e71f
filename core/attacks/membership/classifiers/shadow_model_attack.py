"""Base class of attacks that query shadow models with the target's own samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import confidence, scaled_logit
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.errors import InvalidInputError, NotFittedError


class ShadowModelAttack:
    """Base class of attacks whose shadow models have the target's samples in the same order."""

    labels_: NDArray[np.int64]

    def check(self, target: Outputs) -> None:
        """Check that the attack is fitted and that the target's labels match the shadow models'.

        Raises
        ------
        NotFittedError
            It is not fitted.
        InvalidInputError
            The labels differ.
        """
        name = type(self).__name__
        if not hasattr(self, "labels_"):
            raise NotFittedError(f"{name} has no shadow models. Call fit.")
        if not np.array_equal(self.labels_, target.labels):
            raise InvalidInputError(
                f"{name} compares each sample with what shadow models say of the same one, and "
                "the target's samples have other labels or another number. Give the shadow "
                "models the target's samples, in the same order."
            )

    def logit_of(self, target: Outputs) -> NDArray[np.float64]:
        """Return the target's scaled logit φ of each sample after `check`."""
        self.check(target)
        return scaled_logit(target.probabilities, target.labels)

    @staticmethod
    def unanimous(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the common value of all shadow models for each sample; NaN where they differ.

        Parameters
        ----------
        values : ndarray (n_models, n)
        """
        found: NDArray[np.float64] = np.where((values == values[0]).all(axis=0), values[0], np.nan)
        return found

    @staticmethod
    def logits_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return the scaled logit φ of each model and sample."""
        return np.stack([scaled_logit(m.probabilities, m.labels) for m in _iterate(shadows)])

    @staticmethod
    def confidences_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return the probability of the true class of each model and sample."""
        return np.stack([confidence(m.probabilities, m.labels) for m in _iterate(shadows)])


def _iterate(shadows: Shadows) -> Iterator[Outputs]:
    """Yield the models one by one, since all of them as float64 may not fit into memory."""
    return (shadows.model(number) for number in range(shadows.n_models))
