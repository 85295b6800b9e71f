"""Attacks that query shadow models with the target's own samples: base class and statistics.

The IN/OUT statistics of a sample are over the shadow models trained on it, and over the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import confidence, scaled_logit
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.errors import InvalidInputError, NotFittedError

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InOutStatistics:
    """Statistics of the models of one side (IN or OUT) for each of n samples.

    Attributes
    ----------
    count : int array (n,)
        Models.
    mean : float64 array (n,)
        Their mean; 0 where there is none.
    squares : float64 array (n,)
        Sum of squared deviations from it.
    values : float64 array
        Of all samples together.
    """

    count: NDArray[np.int64]
    mean: _Array
    squares: _Array
    values: _Array

    @property
    def has(self) -> NDArray[np.bool_]:
        """Mask of the samples with at least one model of this side."""
        return self.count > 0

    @property
    def freedom(self) -> int:
        """The degrees of freedom of the pooled variance within samples."""
        return int(np.maximum(self.count - 1, 0).sum())

    def variance(self) -> float:
        """Return the pooled variance within samples; NaN if no sample has two models."""
        return float(self.squares.sum() / self.freedom) if self.freedom else float("nan")


@dataclass(frozen=True, eq=False)
class Sides:
    """IN and OUT statistics of each sample.

    Attributes
    ----------
    inside, outside : Side
    by_class : tuple of (float, float) or None
        For each class with models on both sides, the difference of their means and its weight; None
        where the classes of the samples are not known.
    """

    inside: InOutStatistics
    outside: InOutStatistics
    by_class: tuple[tuple[float, float], ...] | None = None

    @property
    def both(self) -> NDArray[np.bool_]:
        """Mask of the samples with models on both sides."""
        return self.inside.has & self.outside.has

    def shift(self) -> float:
        """Return the mean increase of a sample's value when a model is trained on it.

        Over samples with both sides. If no sample has both, it is the mean difference within
        classes, weighted by the rarer side, since class frequencies are no effect of training.

        Raises
        ------
        InvalidInputError
            No model of one of the sides.
        """
        if not (self.inside.has.any() and self.outside.has.any()):
            side = "none" if not self.inside.has.any() else "all"
            raise InvalidInputError(
                f"The shadow models were trained on {side} of the samples, so they show no "
                "difference. Train each on half of them, drawn at random."
            )
        both = self.both
        if both.any():
            return float((self.inside.mean - self.outside.mean)[both].mean())
        if self.by_class:
            differences, weights = np.array(self.by_class).T
            return float(differences @ weights / weights.sum())
        return float(self.inside.values.mean() - self.outside.values.mean())

    def inside_mean(self) -> _Array:
        """Return each sample's mean over models trained on it; if there is none, an estimate.

        For a sample without any, the mean of the others plus the average shift.

        Raises
        ------
        InvalidInputError
            As `shift`, where a sample lacks one.
        """
        inside, outside = self.inside, self.outside
        if inside.has.all():
            return inside.mean
        return np.where(inside.has, inside.mean, outside.mean + self.shift())

    def outside_mean(self) -> _Array:
        """Return each sample's mean over models not trained on it; if there is none, an estimate.

        For a sample without any, the mean of the others minus the average shift.

        Raises
        ------
        InvalidInputError
            As `inside_mean`.
        """
        inside, outside = self.inside, self.outside
        if outside.has.all():
            return outside.mean
        return np.where(outside.has, outside.mean, inside.mean - self.shift())


def split_in_out(
    values: _Array, members: NDArray[np.bool_], labels: NDArray[np.int64] | None = None
) -> Sides:
    """Compute each sample's IN and OUT statistics from models' values and training memberships.

    Models with exactly equal values for a sample have exactly that mean and no variance, however
    many there are: rounding must not reveal how many models hold a sample.

    Parameters
    ----------
    values : ndarray (n_models, n)
    members : ndarray of bool (n_models, n)
    labels : ndarray of int (n,), optional
        The class of each sample, by which `Sides.shift` compares where no sample has both sides.
    """
    inside, outside = _side_statistics(values, members), _side_statistics(values, ~members)
    if labels is None or (inside.has & outside.has).any():
        return Sides(inside, outside)
    found = []
    for label in np.unique(labels):
        own = labels == label
        here, there = values[:, own][members[:, own]], values[:, own][~members[:, own]]
        if len(here) and len(there):
            difference = _exact_mean(here) - _exact_mean(there)
            found.append((difference, float(min(len(here), len(there)))))
    return Sides(inside, outside, tuple(found))


def _exact_mean(values: _Array) -> float:
    """Return the mean of values; exactly that value if all are equal."""
    return float(values[0] + (values - values[0]).mean())


def _side_statistics(values: _Array, which: NDArray[np.bool_]) -> InOutStatistics:
    """Compute the statistics of one side: of the models that a mask selects for each sample."""
    count = which.sum(axis=0)
    first = values[0] if len(values) else np.zeros(values.shape[1])
    away = np.where(which, values - first, 0.0)
    mean = np.where(count > 0, first + away.sum(axis=0) / np.maximum(count, 1), 0.0)
    squares = np.where(which, values - mean, 0.0) ** 2
    return InOutStatistics(count, mean, squares.sum(axis=0), values[which])


class ShadowModelAttack:
    """Base class of attacks whose shadow models have the target's samples in the same order."""

    labels_: NDArray[np.int64]

    def check(self, target: Outputs) -> None:
        """Raise an error unless the attack is fitted and the target has the shadow models' labels.

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
        """Check the target; return the scaled logit φ of each of its samples."""
        self.check(target)
        return scaled_logit(target.probabilities, target.labels)

    @staticmethod
    def unanimous(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each sample's value where all shadow models agree exactly; NaN elsewhere.

        Parameters
        ----------
        values : ndarray (n_models, n)
        """
        found: NDArray[np.float64] = np.where((values == values[0]).all(axis=0), values[0], np.nan)
        return found

    @staticmethod
    def logits_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return the scaled logit φ of each shadow model and sample, (n_models, n)."""
        return np.stack([scaled_logit(m.probabilities, m.labels) for m in _iterate_models(shadows)])

    @staticmethod
    def confidences_of(shadows: Shadows) -> NDArray[np.float64]:
        """Return the true class's probability for each shadow model and sample, (n_models, n)."""
        return np.stack([confidence(m.probabilities, m.labels) for m in _iterate_models(shadows)])


def _iterate_models(shadows: Shadows) -> Iterator[Outputs]:
    """Yield each shadow model's outputs in turn: all of them as float64 may not fit into memory."""
    return (shadows.model(number) for number in range(shadows.n_models))
