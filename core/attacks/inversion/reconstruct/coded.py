"""Matrices in a byte a number: whole numbers, and a scale for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["coded", "decoded"]


def coded(values: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return whole numbers from -127 to 127, shape (n, d), and the scale of each row, shape (n,).

    Examples
    --------
    >>> codes, scale = coded(np.array([[0.0, 2.54], [-1.27, 0.64]]))
    >>> codes.tolist(), [round(float(one), 4) for one in scale]
    ([[0, 127], [-127, 64]], [0.02, 0.01])
    """
    largest = np.abs(values).max(1, keepdims=True)
    scale = np.maximum(largest / 127, 1e-12).astype(np.float32)
    return np.rint(values / scale).astype(np.int8), scale[:, 0]


def decoded(codes: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float32]:
    """Return what `coded` rounded, shape (n, d)."""
    found: NDArray[np.float32] = codes.astype(np.float32) * scale.astype(np.float32)[:, None]
    return found
