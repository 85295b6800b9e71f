"""UMAP's optimisation rounds, compiled with numba: attraction and random repulsion.

Numba infers the types; the docstrings state them.
"""

from __future__ import annotations

import numpy as np

from leakscope.core.compiled import njit

N_PUSHES = 5
"""Number of random repulsions per attraction (negative_sample_rate)."""

_BITS = 9
"""Mantissa bits that choose a table entry; entries are within 0.1 % of the exact value."""
_SHIFT = 23 - _BITS
_LOWEST, _HIGHEST = -24, 16
"""Range of exponents of squared distances that the tables cover."""
_FIRST = (127 + _LOWEST) << _BITS
_SIZE = (_HIGHEST - _LOWEST) << _BITS


def force_tables(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """Compute float32 tables of the attractive and the repulsive force by squared distance.

    Implements the gradients of McInnes, Healy & Melville (2018), §4.2, at squared distance s:
    pull −2ab s^(b−1)/(1 + a s^b), push 2b/((0.001 + s)(1 + a s^b)).
    Differs from umap-learn: they are looked up instead of computed.
    """
    bits = (np.arange(_SIZE, dtype=np.int64) + _FIRST) << _SHIFT
    middle = (bits + (1 << (_SHIFT - 1))).astype(np.int32)
    s = middle.view(np.float32).astype(np.float64)
    pull = -2 * a * b * s ** (b - 1) / (1 + a * s**b)
    push = 2 * b / ((0.001 + s) * (1 + a * s**b))
    return pull.astype(np.float32), push.astype(np.float32)


@njit(nogil=True, cache=True, inline="always")
def _entry(squared):
    """Return the index in a force table of a positive float32 squared distance."""
    found = (np.float32(squared).view(np.int32) >> _SHIFT) - _FIRST
    return min(max(found, 0), _SIZE - 1)


@njit(nogil=True, cache=True, inline="always")
def _clip(step):
    """Return a step of a coordinate limited to [-4, 4]."""
    return min(max(step, np.float32(-4)), np.float32(4))


@njit(nogil=True, cache=True, fastmath=True)
def run_rounds(places, heads, tails, period, due, pull, push, first, last, n_rounds, state):
    """Move `places` by UMAP's rounds `first` to `last` − 1; return the random generator's state.

    Parameters
    ----------
    places : float32 array (n, 4)
        The unused dimensions hold zeros, and keep them.
    heads, tails : int32 arrays (m,)
        The edges, each in both directions.
    period, due : float32 arrays (m,)
        Rounds between two pulls of an edge, and the round of the next; `due` is moved on.
    pull, push : float32 arrays
        From `force_tables`.
    state : uint64
        Not zero; of a xorshift generator (Marsaglia 2003).
    """
    n = np.uint64(len(places))
    for epoch in range(first, last):
        rate = np.float32(1.0 - epoch / n_rounds)
        for e in range(len(heads)):
            if due[e] > epoch:
                continue
            due[e] += period[e]
            i, j = heads[e], tails[e]
            x, y, z = places[i, 0], places[i, 1], places[i, 2]
            dx, dy, dz = x - places[j, 0], y - places[j, 1], z - places[j, 2]
            squared = dx * dx + dy * dy + dz * dz
            if squared > 0:
                force = pull[_entry(squared)]
                dx, dy, dz = (
                    rate * _clip(force * dx),
                    rate * _clip(force * dy),
                    rate * _clip(force * dz),
                )
                x, y, z = x + dx, y + dy, z + dz
                places[j, 0] -= dx
                places[j, 1] -= dy
                places[j, 2] -= dz
            for _ in range(N_PUSHES):
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                k = np.int64(((state >> np.uint64(32)) * n) >> np.uint64(32))
                dx, dy, dz = x - places[k, 0], y - places[k, 1], z - places[k, 2]
                squared = dx * dx + dy * dy + dz * dz
                if k != i and squared > 0:
                    force = push[_entry(squared)]
                    x += rate * _clip(force * dx)
                    y += rate * _clip(force * dy)
                    z += rate * _clip(force * dz)
            places[i, 0], places[i, 1], places[i, 2] = x, y, z
    return state
