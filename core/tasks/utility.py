"""The score of a task."""

from __future__ import annotations

from dataclasses import dataclass

from core.results import Interval

__all__ = ["Utility"]


@dataclass(frozen=True)
class Utility:
    """A score of a task.

    Attributes
    ----------
    value, chance : float
        In [0, 100]; chance is the share of the most frequent class, or no correlation.
    ci95 : Interval
        Over the test texts alone: Clopper–Pearson for accuracy, bootstrap for correlation.
    n : int
        Test texts, or pairs.
    """

    measure: str
    value: float
    ci95: Interval
    chance: float
    n: int
