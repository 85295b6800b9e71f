"""Recovery of the exact key of a Hadamard rotation from a rough estimate of the rotation.

Packages that multiply by a Hadamard matrix instead of a dense one hide far less: Q = H D₂ P H D₁
has two rows of signs and a permutation for a key, and every entry of D₂ P H D₁ has the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakscope.core.audit.alignment.linear import Floats
from leakscope.core.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class HadamardKey:
    """The recovered key of a rotation Q = H D₂ P H D₁, of which d columns are used.

    Attributes
    ----------
    rotation : ndarray of float64, shape (D, d)
        Q: the stored vector of x is Q x.
    fit : float
        Mean of how far each row of the estimate agrees with the row of the key, in [0, 1].
    is_permutation : bool
        Whether each row of H was found as often as a permutation has it, which no estimate of a
        dense rotation shows by accident.
    """

    rotation: Floats
    fit: float
    is_permutation: bool


def hadamard_transform(rows: Floats) -> Floats:
    """Multiply each row by the normalised Walsh–Hadamard matrix, shape (n, D).

    Examples
    --------
    >>> hadamard_transform(np.array([[2.0, 0.0, 0.0, 0.0]])).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    n, size = rows.shape
    if size & (size - 1):
        raise InvalidInputError(f"rows must have a power of two of columns, got {size}.")
    found, half = rows.astype(np.float64), 1
    while half < size:
        pairs = found.reshape(n, -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        found = np.stack([first + second, first - second], axis=2).reshape(n, size)
        half *= 2
    scaled: Floats = found / np.sqrt(size)
    return scaled


def hadamard_key(estimate: Floats, *, n_rounds: int = 3) -> HadamardKey:
    """Recover the key of a rotation Q = H D₂ P H D₁ from an estimate of its first d columns.

    H Q = D₂ P H D₁. The product of two of its rows is, up to a sign, a row of H, whatever D₁ is; so
    the signs of one row replace those of D₁, and a Hadamard transform finds each row of H.
    Then all rows vote on each sign, `n_rounds` times.

    Parameters
    ----------
    estimate : ndarray of float64, shape (D, d)
        D a power of two, d at most D.
    n_rounds : int
    """
    size, d = estimate.shape
    inner = hadamard_transform(estimate.T).T
    inner = inner / np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), 1e-12)
    walsh = hadamard_transform(np.eye(size))[:, :d] * np.sqrt(size)
    signs = np.where(inner[0] < 0, -1.0, 1.0)
    for _ in range(n_rounds):
        padded = np.zeros((size, size))
        padded[:, :d] = inner * signs
        peaks = hadamard_transform(padded)
        chosen = np.abs(peaks).argmax(axis=1)
        flips = np.sign(peaks[np.arange(size), chosen])
        votes = (inner * walsh[chosen] * flips[:, None]).sum(axis=0)
        signs = np.where(votes < 0, -1.0, 1.0)
    key = walsh[chosen] * flips[:, None] * signs / np.sqrt(size)
    fit = float((inner * key).sum(axis=1).mean() * np.sqrt(size / d))
    period = 1 << (d - 1).bit_length()  # rows of H that are this far apart agree in d columns
    found = np.bincount(chosen % period, minlength=period)
    is_permutation = bool((found == size // period).all())
    return HadamardKey(hadamard_transform(key.T).T, fit, is_permutation)
