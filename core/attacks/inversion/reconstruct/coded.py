"""Matrices in a byte or half a byte a number: whole numbers, and a scale for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["coded", "coded_in_halves", "decoded", "decoded_halves"]


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


def coded_in_halves(values: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return whole numbers from -7 to 7, two a byte, shape (n, ⌈d / 2⌉), and the scale of each row.

    The first of two lies in the low four bits; each is kept as itself plus 8.

    Examples
    --------
    >>> halves, scale = coded_in_halves(np.array([[0.7, -0.3, 0.1]]))
    >>> [f"{byte:02x}" for byte in halves[0]], [round(float(one), 4) for one in scale]
    (['5f', '89'], [0.1])
    """
    largest = np.abs(values).max(1, keepdims=True)
    scale = np.maximum(largest / 7, 1e-12).astype(np.float32)
    whole = (np.rint(values / scale) + 8).astype(np.uint8)
    if whole.shape[1] % 2:
        whole = np.pad(whole, ((0, 0), (0, 1)), constant_values=8)
    return whole[:, ::2] | (whole[:, 1::2] << 4), scale[:, 0]


def decoded_halves(halves: NDArray[Any], scale: NDArray[Any], d: int) -> NDArray[np.float32]:
    """Return what `coded_in_halves` rounded, shape (n, d)."""
    whole = np.stack([halves & 15, halves >> 4], axis=2).reshape(len(halves), -1)[:, :d]
    return decoded(whole.astype(np.int8) - 8, scale)
