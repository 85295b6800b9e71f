"""What is tried of a setting: by a search for better ones, and along a slider.

Settings that change which words count (the vocabulary, stop words) are never searched: a smaller
vocabulary would look better and be none the better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Between", "Fixed", "OneOf", "Range", "Strength"]


@dataclass(frozen=True)
class OneOf:
    """One of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """A number from low to high, both included; whole where both are whole.

    With `is_log`, as many tries between 1 and 10 as between 10 and 100.
    """

    low: float
    high: float
    is_log: bool = False


Range = OneOf | Between


@dataclass(frozen=True)
class Fixed:
    """The value that every trial of a search takes, unless another is given."""

    value: Any


@dataclass(frozen=True)
class Strength:
    """That a setting says how strong a defence is.

    Attributes
    ----------
    title : str
        Over a slider, which way it works included.
    start : float
        Where a slider stands first, or at the step next to it.
    steps : tuple of float, or a callable of the encoder's dimension
        In the order of the slider.
    said : str
        How a table or a figure names a value, as `str.format` takes it.
    one : str
        How it names 1, where that is another word than of several.
    """

    title: str
    start: float
    steps: tuple[float, ...] | Callable[[int], tuple[float, ...]]
    said: str = "{:g}"
    one: str = ""

    def named(self, value: float) -> str:
        """Return a value as a table or a figure names it.

        Examples
        --------
        >>> digits = Strength("Digits", 1, (2, 1), "to {:g} decimals", "to {:g} decimal")
        >>> digits.named(2), digits.named(1)
        ('to 2 decimals', 'to 1 decimal')
        """
        return (self.one if self.one and value == 1 else self.said).format(value)

    def steps_for(self, dimension: int) -> tuple[float, ...]:
        """Return the steps for vectors of so many numbers."""
        return self.steps(dimension) if callable(self.steps) else self.steps
