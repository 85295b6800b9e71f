"""Search ranges of settings, and the steps of a defence's strength slider.

Settings that change which words count (the vocabulary, stop words) are never searched: a smaller
vocabulary would look better and be none the better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Categorical:
    """A search range: one of the listed values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Uniform:
    """A search range: a number from low to high inclusive, whole if both are whole.

    With `is_log`, as many tries between 1 and 10 as between 10 and 100.
    """

    low: float
    high: float
    is_log: bool = False


Range = Categorical | Uniform


@dataclass(frozen=True)
class Fixed:
    """The value that every trial of a search uses unless another is given."""

    value: Any


@dataclass(frozen=True)
class Strength:
    """Marks a setting as a defence's strength: slider title, start, steps and value format.

    Attributes
    ----------
    title : str
        Title of a slider, including its direction.
    start : float
        Initial value of a slider, rounded to the nearest step.
    steps : tuple of float, or a callable of the encoder's dimension
        Slider steps, in order.
    pattern : str
        Format of a value in tables and figures (`str.format`).
    one : str
        Format of the value 1, if it differs (singular).
    """

    title: str
    start: float
    steps: tuple[float, ...] | Callable[[int], tuple[float, ...]]
    pattern: str = "{:g}"
    one: str = ""

    def named(self, value: float) -> str:
        """Format a strength value for a table or a figure.

        Examples
        --------
        >>> digits = Strength("Digits", 1, (2, 1), "to {:g} decimals", "to {:g} decimal")
        >>> digits.named(2), digits.named(1)
        ('to 2 decimals', 'to 1 decimal')
        """
        return (self.one if self.one and value == 1 else self.pattern).format(value)

    def steps_for(self, dimension: int) -> tuple[float, ...]:
        """Return the slider steps for vectors of the given dimension."""
        return self.steps(dimension) if callable(self.steps) else self.steps
