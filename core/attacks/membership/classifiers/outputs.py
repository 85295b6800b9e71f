"""Outputs of a classifier, and of its shadow models, for samples with known membership."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError

MOST_OFF_ONE = 0.01
"""The most that a sample's probabilities may deviate from a sum of 1, for rounding in files."""

_SHOWN = 5


def checked_probabilities(probabilities: Any, first_model: int = 0) -> NDArray[np.float64]:
    """Convert class probabilities to float64 after checking that each row sums to 1.

    Parameters
    ----------
    first_model : int
        Number of the first of several models, for messages.

    Raises
    ------
    InvalidInputError
        No numbers, one class, NaN or infinity, a value outside [0, 1], or a row that does not sum
        to 1; the first rows of that kind are named.
    """
    try:
        array = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("probabilities must be an array of numbers.") from error
    if array.ndim < 2 or array.shape[-2] < 1:
        raise InvalidInputError(
            f"probabilities must have a row for each sample and a column for each class, got shape "
            f"{array.shape}."
        )
    if array.shape[-1] < 2:
        raise InvalidInputError(
            "the probabilities have only one class. Give one column for each class: two classes "
            "need two columns."
        )
    for is_wrong, what in probability_faults(array):
        if not is_wrong.any():
            continue
        rows = np.argwhere(is_wrong)
        rows[:, :-1] += first_model
        shown = ", ".join(
            f"{row[-1]}" if len(row) == 1 else f"{row[-1]} of model {row[0]}"
            for row in rows[:_SHOWN]
        )
        more = "" if len(rows) <= _SHOWN else f" and {len(rows) - _SHOWN:,} more"
        raise InvalidInputError(f"the probabilities of sample {shown}{more} {what}")
    return array


def probability_faults(array: NDArray[np.float64]) -> Iterator[tuple[NDArray[np.bool_], str]]:
    """Yield, for each kind of fault, a mask of the faulty samples (may be empty) and a message."""
    total = array.sum(axis=-1)  # NaN or infinite where a value of the row is
    yield ~np.isfinite(total), "hold NaN or infinity. Remove those rows."
    yield array.min(axis=-1) < 0, "hold a negative number. Give probabilities, not scores."
    yield (
        np.abs(total - 1) > MOST_OFF_ONE,
        f"do not sum to 1 within {MOST_OFF_ONE:g}. Give the probabilities of all classes, after "
        "the softmax.",
    )


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of one classifier: probabilities, labels, memberships and users.

    Attributes
    ----------
    probabilities : float64 array (n, n_classes)
        A row for each sample, which sums to 1.
    labels : int array (n,)
        The true class of each sample, as a column of `probabilities`.
    members : bool array (n,)
        Whether it was trained on the sample.
    users : tuple of str (n,), optional
        Whose sample it is.

    Raises
    ------
    InvalidInputError
        Lengths that differ, a label outside the classes, or probabilities that are none.
    """

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    members: NDArray[np.bool_]
    users: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check all fields and convert them to their types."""
        checked = checked_probabilities(self.probabilities)
        _check_axes("probabilities", checked, 2)
        object.__setattr__(self, "probabilities", checked)
        n, n_classes = checked.shape
        object.__setattr__(self, "labels", _checked_labels(self.labels, n, n_classes))
        object.__setattr__(self, "members", _checked_members(self.members, (n,)))
        object.__setattr__(self, "users", _checked_users(self.users, n))

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.probabilities.shape[1])

    def chosen(self, which: NDArray[Any]) -> Outputs:
        """Return new outputs with only some samples, chosen by index or by a mask."""
        places = np.arange(len(self))[which]
        return replace(
            self,
            probabilities=self.probabilities[places],
            labels=self.labels[places],
            members=self.members[places],
            users=None if self.users is None else tuple(self.users[i] for i in places),
        )


@dataclass(frozen=True, eq=False)
class Shadows:
    """The outputs of several shadow classifiers for the same samples in the same order.

    Attributes
    ----------
    probabilities : float array (n_models, n, n_classes)
        Kept as float32 where they come so; what is computed of them is float64.
    labels : int array (n,)
    members : bool array (n_models, n)
        Whether that model was trained on that sample.
    users : tuple of str (n,), optional

    Raises
    ------
    InvalidInputError
        As `Outputs`.
    """

    probabilities: NDArray[np.floating[Any]]
    labels: NDArray[np.int64]
    members: NDArray[np.bool_]
    users: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check all fields and convert them to their types."""
        array = np.asarray(self.probabilities)
        _check_axes("probabilities of shadows", array, 3)
        n_models, n, n_classes = array.shape
        if n_models < 1:
            raise InvalidInputError("there is no shadow model. Give at least one.")
        if array.dtype == np.float32:
            for first in range(n_models):  # one by one: their float64 is twice as large
                checked_probabilities(array[first : first + 1], first)
        else:
            array = checked_probabilities(array)
        object.__setattr__(self, "probabilities", array)
        object.__setattr__(self, "labels", _checked_labels(self.labels, n, n_classes))
        object.__setattr__(self, "members", _checked_members(self.members, (n_models, n)))
        object.__setattr__(self, "users", _checked_users(self.users, n))

    @property
    def n_models(self) -> int:
        """The number of shadow models."""
        return len(self.probabilities)

    def model(self, number: int) -> Outputs:
        """Return the outputs of one shadow model by its number."""
        return Outputs(
            np.asarray(self.probabilities[number], dtype=np.float64),
            self.labels,
            self.members[number],
            self.users,
        )

    def models(self) -> list[Outputs]:
        """Return the outputs of each shadow model as a list."""
        return [self.model(number) for number in range(self.n_models)]

    def without(self, number: int) -> Shadows:
        """Return new shadow outputs without the model of a given number.

        Raises
        ------
        InvalidInputError
            There is no other.
        """
        kept = [i for i in range(self.n_models) if i != number]
        return replace(self, probabilities=self.probabilities[kept], members=self.members[kept])

    def matches(self, target: Outputs) -> bool:
        """Return whether the samples can be those of a target: equally many with equal labels."""
        return np.array_equal(self.labels, target.labels)

    @classmethod
    def of(cls, models: Sequence[Outputs]) -> Shadows:
        """Stack the outputs of several models for the same samples into one Shadows.

        Raises
        ------
        InvalidInputError
            There is none, or their samples or classes differ.
        """
        if not models:
            raise InvalidInputError("there is no shadow model. Give at least one.")
        first = models[0]
        for i, other in enumerate(models):
            is_like = other.probabilities.shape == first.probabilities.shape
            if not is_like or not np.array_equal(other.labels, first.labels):
                raise InvalidInputError(
                    f"shadow model {i} has other samples or classes than the first. "
                    "Give each model the same samples in the same order."
                )
        return cls(
            np.stack([model.probabilities for model in models]),
            first.labels,
            np.stack([model.members for model in models]),
            first.users,
        )


def _check_axes(name: str, array: NDArray[Any], n_axes: int) -> None:
    """Raise InvalidInputError unless an array has n_axes axes."""
    if array.ndim != n_axes:
        raise InvalidInputError(f"{name} must have {n_axes} axes, got the shape {array.shape}.")


def _checked_labels(labels: Any, n: int, n_classes: int) -> NDArray[np.int64]:
    """Return labels as int64 after checking that there are n, each in [0, n_classes)."""
    array = np.asarray(labels)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise InvalidInputError(f"labels must be {n} whole numbers, one for each sample.")
    if array.min() < 0 or array.max() >= n_classes:
        raise InvalidInputError(
            f"labels must lie in [0, {n_classes - 1}], the columns of the probabilities, got "
            f"{array.min()} to {array.max()}."
        )
    return array.astype(np.int64)


def _checked_members(members: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return memberships after checking that they are boolean and of the given shape."""
    array = np.asarray(members)
    if array.shape != shape or array.dtype != np.bool_:
        raise InvalidInputError(f"members must be true or false in the shape {shape}.")
    return array


def _checked_users(users: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    """Return users as a tuple after checking that there are n; None if there are none."""
    if users is None:
        return None
    found = tuple(users)
    if len(found) != n:
        raise InvalidInputError(f"users must be {n} names, one for each sample, got {len(found)}.")
    return found
