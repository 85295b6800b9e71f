"""Outcomes counted off envelopes, compiled: N_w and S_w at each η of a grid."""

from __future__ import annotations

import numpy as np

from core.compiled import njit

__all__ = ["count_outcomes"]


@njit(nogil=True, cache=True)
def count_outcomes(tokens, starts, rates, ids, counts, half_etas, seen, returned, n_w, s_w):
    """Count, at each η, the draws that return the token, and the distinct candidates returned.

    A candidate is returned on a range of η: a set of bits. The bits that are new among all draws
    are what it adds to S_w.

    Parameters
    ----------
    tokens, starts : int64 array (T,)
        Each token's own place among the candidates (−1 where it is none), and its start.
    rates, ids, counts : arrays
        As `walk_tokens` wrote them.
    half_etas : float32 array (G,)
        η/2, descending.
    seen, returned : uint64 array (U,), all 0, and int64 array (U,)
        Room to work in, left as it was found: making it anew would cost as much as the counting.
    n_w, s_w : uint16 array (T, G)
        Written.
    """
    steps, sums = np.empty(65, np.int64), np.empty(64, np.uint64)
    for i in range(len(counts)):
        for first in range(0, len(half_etas), 64):
            width = min(64, len(half_etas) - first)
            n_returned = 0
            steps[:], sums[:] = 0, 0
            for s in range(counts.shape[1]):
                low = 0
                for n in range(counts[i, s] + 1):
                    u = starts[i] if n == 0 else np.int64(ids[i, s, n - 1])
                    high = width
                    if n < counts[i, s]:
                        high = _first_below(half_etas, first, width, rates[i, s, n])
                    if high > low:
                        if u == tokens[i]:
                            steps[low] += 1
                            steps[high] -= 1
                        if seen[u] == 0:
                            returned[n_returned] = u
                            n_returned += 1
                        seen[u] |= _bits(high) & ~_bits(low)
                        low = high
            for k in range(n_returned):
                bits = seen[returned[k]]
                seen[returned[k]] = 0
                for g in range(width):
                    sums[g] += (bits >> np.uint64(g)) & np.uint64(1)
            same = 0
            for g in range(width):
                same += steps[g]
                n_w[i, first + g], s_w[i, first + g] = same, sums[g]


@njit(nogil=True, cache=True)
def _bits(n):
    """Return the n lowest bits."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF)
    return full if n >= 64 else ~(full << np.uint64(n))


@njit(nogil=True, cache=True)
def _first_below(half_etas, first, width, rate):
    """Return how many of `width` descending values from `first` on are at least the rate."""
    n = 0
    for g in range(first, first + width):
        n += half_etas[g] >= rate
    return n
