"""What samples come from: users, books, documents; samples of one are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["unit_rows"]


def unit_rows(units: Iterable[Hashable] | None, n: int) -> NDArray[np.int64]:
    """Return the number of the unit of each of n samples, in the order in which they come.

    Parameters
    ----------
    units : iterable or None
        The unit of each; None where each sample is one by itself.

    Examples
    --------
    >>> unit_rows(["b", "a", "b"], 3).tolist(), unit_rows(None, 2).tolist()
    ([0, 1, 0], [0, 1])
    """
    if units is None:
        return np.arange(n, dtype=np.int64)
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(unit, len(numbers)) for unit in units], dtype=np.int64)
