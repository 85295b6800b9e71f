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
    """Both sides of each sample."""

    inside: Side
    outside: Side

    @property
    def both(self) -> NDArray[np.bool_]:
        """Which samples have models of either side."""
        return self.inside.has & self.outside.has

    def shift(self) -> float:
        """Return by how much training on a sample raises its value, on average.

        Of the samples that have both sides; where there is none, of the means of all.

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


def sides_of(values: _Array, members: NDArray[np.bool_]) -> Sides:
    """Split what models say of samples by whether they were trained on them.

    Parameters
    ----------
    values : ndarray (n_models, n)
    members : ndarray of bool (n_models, n)
    """
    return Sides(_side(values, members), _side(values, ~members))


def _side(values: _Array, which: NDArray[np.bool_]) -> Side:
    count = which.sum(axis=0)
    mean = np.where(which, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = np.where(which, values - mean, 0.0) ** 2
    return Side(count, mean, squares.sum(axis=0), values[which])
