"""Quantization of matrices to 8 or 4 bits a number, with a scale for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def quantize(values: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize a matrix to 8 bits: integers in [-127, 127], (n, d), and a scale per row, (n,).

    Examples
    --------
    >>> codes, scale = quantize(np.array([[0.0, 2.54], [-1.27, 0.64]]))
    >>> codes.tolist(), [round(float(one), 4) for one in scale]
    ([[0, 127], [-127, 64]], [0.02, 0.01])
    """
    largest = np.abs(values).max(1, keepdims=True)
    scale = np.maximum(largest / 127, 1e-12).astype(np.float32)
    return np.rint(values / scale).astype(np.int8), scale[:, 0]


def dequantize(codes: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float32]:
    """Convert 8-bit integers and row scales back to a float matrix, (n, d)."""
    found: NDArray[np.float32] = codes.astype(np.float32) * scale.astype(np.float32)[:, None]
    return found


def quantize_4bit(values: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Quantize a matrix to 4 bits, two numbers a byte, (n, ⌈d / 2⌉), and a scale per row.

    The first of two is in the low four bits; each is an integer in [-7, 7], stored plus 8.

    Examples
    --------
    >>> halves, scale = quantize_4bit(np.array([[0.7, -0.3, 0.1]]))
    >>> [f"{byte:02x}" for byte in halves[0]], [round(float(one), 4) for one in scale]
    (['5f', '89'], [0.1])
    """
    largest = np.abs(values).max(1, keepdims=True)
    scale = np.maximum(largest / 7, 1e-12).astype(np.float32)
    whole = (np.rint(values / scale) + 8).astype(np.uint8)
    if whole.shape[1] % 2:
        whole = np.pad(whole, ((0, 0), (0, 1)), constant_values=8)
    return whole[:, ::2] | (whole[:, 1::2] << 4), scale[:, 0]


def dequantize_4bit(halves: NDArray[Any], scale: NDArray[Any], d: int) -> NDArray[np.float32]:
    """Convert a matrix quantized to 4 bits back to floats, (n, d)."""
    whole = np.stack([halves & 15, halves >> 4], axis=2).reshape(len(halves), -1)[:, :d]
    return dequantize(whole.astype(np.int8) - 8, scale)
