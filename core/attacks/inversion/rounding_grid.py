"""Excluding inputs by the rounding grid of a floating-point sum (Mironov 2012).

Where y = fl32(v + n) and |y_i| < |v_i|/2, the sum is exact (Sterbenz), so that y_i is a multiple of
the spacing of floats at v_i/2. A candidate of which that does not hold cannot have been the input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ZERO = 127
"""The lowest bit that is set in 0: any multiple is 0's."""


class RoundingGrid:
    """Test which rows of a table cannot have been the input of a rounded float32 sum.

    Parameters
    ----------
    table : float32 array (V, n)
        The possible inputs.
    """

    def __init__(self, table: NDArray[np.float32]) -> None:
        columns = np.ascontiguousarray(np.asarray(table, np.float32).T)
        self._halves = np.abs(columns) / 2
        _, exponents = np.frexp(columns)
        self._spacings = np.where(columns == 0, -_ZERO, exponents - 25).astype(np.int16)
        self._widest = self._halves.max(1), self._spacings.max(1)

    def excluded(self, noisy: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return, for each of (m, n) noisy sums, which of V table rows it excludes, bool (m, V)."""
        found = np.ones((len(noisy), self._halves.shape[1]), bool)
        lowest = lowest_bits(noisy)
        widest, coarsest = self._widest
        may_exclude = (np.abs(noisy) < widest) & (lowest < coarsest)
        for row, own, sizes, bits in zip(found, may_exclude, np.abs(noisy), lowest, strict=True):
            left = np.arange(len(row))
            for i in np.flatnonzero(own):
                is_left = (sizes[i] >= self._halves[i, left]) | (bits[i] >= self._spacings[i, left])
                left = left[is_left]
            row[left] = False
        return found


def lowest_bits(values: NDArray[np.float32]) -> NDArray[np.int16]:
    """Return the exponent of the lowest set bit of each number; 127 for 0.

    Examples
    --------
    >>> lowest_bits(np.float32([1, 6, 0.375, 0])).tolist()
    [0, 1, -3, 127]
    """
    mantissas, exponents = np.frexp(np.asarray(values, np.float32))
    whole = np.abs(mantissas * 2.0**24).astype(np.int64)
    _, place = np.frexp((whole & -whole).astype(np.float64))
    return np.where(whole == 0, _ZERO, exponents - 24 + place - 1).astype(np.int16)
