"""What shadow models say of each sample: those that were trained on it, and those that were not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError

__all__ = ["Side", "Sides", "sides_of"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """The models of one side, for each of n samples.

    Attributes
    ----------
    count : int array (n,)
        Models.
    mean : float64 array (n,)
        Their mean; 0 where there is none.
    squares : float64 array (n,)
        Sum of the squared distances from it.
    values : float64 array
        Of all samples together.
    """

    count: NDArray[np.int64]
    mean: _Array
    squares: _Array
    values: _Array

    @property
    def has(self) -> NDArray[np.bool_]:
        """Which samples have a model of this side."""
        return self.count > 0

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the variance within samples."""
        return int(np.maximum(self.count - 1, 0).sum())

    def variance(self) -> float:
        """Return the variance within samples, pooled over them; NaN where no sample has two."""
        return float(self.squares.sum() / self.freedom) if self.freedom else float("nan")


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides of each sample.

    Attributes
    ----------
    inside, outside : Side
    by_class : tuple of (float, float) or None
        Of each class that has models on both sides, the difference of their means and its weight;
        None where the classes of the samples are not known.
    """

    inside: Side
    outside: Side
    by_class: tuple[tuple[float, float], ...] | None = None

    @property
    def both(self) -> NDArray[np.bool_]:
        """Which samples have models of either side."""
        return self.inside.has & self.outside.has

    def shift(self) -> float:
        """Return by how much training on a sample raises its value, on average.

        Of the samples that have both sides. Where no sample has both, it is the mean difference
        within classes, weighted by the rarer side: how classes are spread over the sides is no
        effect of training.

        Raises
        ------
        InvalidInputError
            No model of one of the sides.
        """
        if not (self.inside.has.any() and self.outside.has.any()):
            side = "none" if not self.inside.has.any() else "all"
            raise InvalidInputError(
                f"The shadow models were trained on {side} of the samples: they say nothing of "
                "the difference. Train each on half of them, drawn at random."
            )
        both = self.both
        if both.any():
            return float((self.inside.mean - self.outside.mean)[both].mean())
        if self.by_class:
            differences, weights = np.array(self.by_class).T
            return float(differences @ weights / weights.sum())
        return float(self.inside.values.mean() - self.outside.values.mean())

    def inside_mean(self) -> _Array:
        """Return the mean of models that were trained on each sample.

        Where a sample has none, it is the mean of the others, shifted as on average.

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
        """Return the mean of models that were not trained on each sample, likewise.

        Raises
        ------
        InvalidInputError
            As `inside_mean`.
        """
        inside, outside = self.inside, self.outside
        if outside.has.all():
            return outside.mean
        return np.where(outside.has, outside.mean, inside.mean - self.shift())


def sides_of(
    values: _Array, members: NDArray[np.bool_], labels: NDArray[np.int64] | None = None
) -> Sides:
    """Split what models say of samples by whether they were trained on them.

    Models that say exactly the same of a sample have exactly that mean and no variance, however
    many there are: rounding must not tell a sample that three models hold from one that two hold.

    Parameters
    ----------
    values : ndarray (n_models, n)
    members : ndarray of bool (n_models, n)
    labels : ndarray of int (n,), optional
        The class of each sample, by which `Sides.shift` compares where no sample has both sides.
    """
    inside, outside = _side(values, members), _side(values, ~members)
    if labels is None or (inside.has & outside.has).any():
        return Sides(inside, outside)
    found = []
    for label in np.unique(labels):
        own = labels == label
        here, there = values[:, own][members[:, own]], values[:, own][~members[:, own]]
        if len(here) and len(there):
            difference = _mean(here) - _mean(there)
            found.append((difference, float(min(len(here), len(there)))))
    return Sides(inside, outside, tuple(found))


def _mean(values: _Array) -> float:
    """Return the mean; of equal values exactly that value."""
    return float(values[0] + (values - values[0]).mean())


def _side(values: _Array, which: NDArray[np.bool_]) -> Side:
    count = which.sum(axis=0)
    first = values[0] if len(values) else np.zeros(values.shape[1])
    away = np.where(which, values - first, 0.0)
    mean = np.where(count > 0, first + away.sum(axis=0) / np.maximum(count, 1), 0.0)
    squares = np.where(which, values - mean, 0.0) ** 2
    return Side(count, mean, squares.sum(axis=0), values[which])
