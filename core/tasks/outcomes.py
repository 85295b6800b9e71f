"""Per-text outcomes of a task, so that two encoders are compared on the same texts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval, clopper_pearson
from leakscope.core.protocols import Encoder
from leakscope.core.rank_correlation import spearman_correlation, spearman_difference
from leakscope.core.results import Interval, Score
from leakscope.core.units import effective_size


class Outcome(Protocol):
    """Protocol of an encoder's results on each test text."""

    def score(self) -> Score:
        """Return the mean over test texts with its interval and chance level."""
        ...

    def change_from(self, other: Self, seed: int = 0) -> Score:
        """Return the difference to another encoder's outcome on the same texts, paired."""
        ...


class Task(Hashable, Protocol):
    """Protocol of a task that measures how useful vectors are.

    Attributes
    ----------
    name, measure : str
        How results call it, and what is measured.
    has_official_split : bool
        Whether all runs are tested on the same texts, so that their errors do not average out.
    """

    measure: ClassVar[str]

    @property
    def name(self) -> str:
        """The task's name in results."""
        ...

    @property
    def has_official_split(self) -> bool:
        """Whether all runs are tested on the same texts."""
        ...

    def outcome(self, encoder: Encoder, *, n_train: int, n_test: int, seed: int) -> Outcome:
        """Encode the task's texts and test the vectors; n_train and n_test of 0 mean all texts."""
        ...


class ClassIds:
    """Base of labelled texts: their classes, and the number of each text's class."""

    labels: tuple[str, ...]

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The classes in alphabetical order."""
        return tuple(sorted(set(self.labels)))

    @cached_property
    def class_ids(self) -> NDArray[np.int64]:
        """The class of each text, as an index into `classes`."""
        place = {label: i for i, label in enumerate(self.classes)}
        return np.array([place[label] for label in self.labels], dtype=np.int64)


@dataclass(frozen=True)
class Hits:
    """Right or wrong on each of n texts.

    Attributes
    ----------
    right : ndarray of bool, shape (n,)
    chance : float
        Per cent that guessing reaches.
    units : tuple or None
        The unit of each text (`leakscope.core.units.units_or_none`); None where each is its own.
    """

    right: NDArray[np.bool_]
    chance: float
    units: tuple[Hashable, ...] | None = None

    def score(self) -> Score:
        """Return the share of right texts in per cent, with a Clopper–Pearson interval.

        Implements Korn & Graubard (1998) where texts are copies: n is their effective size.
        """
        n, share = len(self.right), float(self.right.mean())
        size = n if self.units is None else effective_size(self.units)
        # An effective size is not whole; the formula does not ask for it.
        ends = clopper_pearson(share * size, size)  # type: ignore[arg-type]
        interval = Interval(100 * ends.low, 100 * ends.high)
        return Score(100 * share, interval, n, self.chance)

    def change_from(self, other: Hits, seed: int = 0) -> Score:
        """Return the difference to another encoder's per cent right, by a paired bootstrap."""
        _check_same(len(self.right), len(other.right))
        difference = 100 * (self.right.astype(np.float64) - other.right)
        interval = bootstrap_interval(difference, groups=self.units, seed=seed)
        return Score(float(difference.mean()), interval, len(difference), 0.0)


@dataclass(frozen=True)
class Ranks:
    """An encoder's cosine and the human score of each of n text pairs."""

    cosines: NDArray[np.float64]
    scores: NDArray[np.float64]
    seed: int = 0
    units: tuple[Hashable, ...] | None = None
    """Sampling unit of each pair (`leakscope.core.units.units_or_none`); None if all are distinct.
    """

    def score(self) -> Score:
        """Return Spearman's correlation × 100 with its interval; chance is 0."""
        value, ends = spearman_correlation(
            self.cosines, self.scores, groups=self.units, seed=self.seed
        )
        interval = Interval(100 * ends.low, 100 * ends.high)
        return Score(100 * value, interval, len(self.scores), 0.0)

    def change_from(self, other: Ranks, seed: int = 0) -> Score:
        """Return the difference to another encoder's correlation × 100, by a paired bootstrap."""
        _check_same(len(self.scores), len(other.scores))
        value, ends = spearman_difference(
            self.cosines, other.cosines, self.scores, groups=self.units, seed=seed
        )
        interval = Interval(100 * ends.low, 100 * ends.high)
        return Score(100 * value, interval, len(self.scores), 0.0)


def _check_same(n: int, other: int) -> None:
    """Raise InvalidInputError unless both outcomes have the same number of texts."""
    if n != other:
        raise InvalidInputError(f"Outcomes on {n} and on {other} texts cannot be compared.")
