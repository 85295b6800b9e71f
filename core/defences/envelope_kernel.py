"""The compiled inner loops of the deniability engine: lower envelopes of lines, with pruning.

Every draw s scales with 1/η, so the distance of candidate u to the noisy vector of token w is, up
to a term that is the same for all u, the line a[u] − x·p[s, u] in x = 2/η, where a[u] is the
squared distance of the two tokens and p[s, u] the product of the draw and the candidate. The
candidate returned at η is the lowest line at x = 2/η. Starting at x = 0 (no noise), each step of
the walk finds the next line to become the lowest: the one of greatest rate

    (p[s, u] − p[s, cur]) / (a[u] − a[cur]),

which is η/2 at the crossing. Candidates stand in the order of their norm, cut into buckets. Of each
bucket the nearest to the token are tried first; the rest is walked by descending p and left as
soon as no rate there can beat the best: a is at least the bucket's nearest remaining.

Compiled by numba for the machine at hand; every function releases the interpreter's lock, so that
threads work side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["HEAD", "count_outcomes", "walk_tokens"]

HEAD = np.dtype([("p", np.float32), ("u", np.int32)])
"""An entry of a bucket's list by descending p: the product, and the candidate."""


@njit(nogil=True, cache=True)
def walk_tokens(
    squared, starts, products, by_candidate, heads, bounds, n_near, least_rate, rates, ids, counts
):
    """Fill the envelope of every (token, draw): crossing rates, descending, and candidates.

    Parameters
    ----------
    squared : float32 array (T, U)
        Squared distance of each token to each candidate.
    starts : int64 array (T,)
        The candidate nearest to each token: the token itself where it is a candidate.
    products, by_candidate : float32 array (S, U), (U, S)
        Draw times candidate, in both orders of memory.
    heads : HEAD array (S, B, J)
        The J greatest products of each bucket, descending.
    bounds : int64 array (B + 1,)
        Where buckets begin and end.
    n_near : int
        Nearest candidates tried first, a bucket.
    least_rate : float32
        η/2 at the end of the walk.
    rates, ids, counts : float32 (T, S, C), int32 (T, S, C), int32 (T, S)
        Written: crossings, the candidate after each, and how many there are. A walk ends after C.
    """
    n_draws, n_buckets = heads.shape[0], heads.shape[1]
    near = np.empty(n_buckets * n_near, np.int32)
    near_squared = np.empty(n_buckets * n_near, np.float32)
    rest = np.empty(n_buckets, np.float32)
    near_products = np.empty((n_draws, len(near)), np.float32)
    room = np.empty(len(near), np.float32)
    best, best_id = np.empty(n_draws, np.float32), np.empty(n_draws, np.int32)
    for i in range(len(squared)):
        distance, start = squared[i], starts[i]
        _find_near(distance, start, bounds, n_near, near, near_squared, rest)
        _gather(by_candidate, near, near_products)
        best[:], best_id[:] = least_rate, -1
        own = by_candidate[start]
        _first_rates(by_candidate, own, near, near_squared, distance[start], best, best_id)
        for s in range(n_draws):
            counts[i, s] = _walk(
                best[s], best_id[s], own[s], distance[start], distance, near, near_squared, rest,
                near_products[s], heads[s], bounds, products[s], least_rate, rates[i, s],
                ids[i, s], room,
            )  # fmt: skip


@njit(nogil=True, cache=True)
def _walk(
    best, best_id, p, a, distance, near, near_squared, rest, near_products, heads, bounds,
    products, least_rate, rates, ids, room,
):  # fmt: skip
    """Walk one envelope from the start's line (p, a); return the number of crossings."""
    n_heads, n = heads.shape[1], 0
    while True:
        for b in range(len(rest)):
            # Below this product no candidate of the bucket crosses earlier than the best.
            stop = p + best * max(rest[b] - a, np.float32(0))
            i = 0
            while i < n_heads and heads[b, i].p > stop:
                u = heads[b, i].u
                da, dp = distance[u] - a, heads[b, i].p - p
                if dp > best * da and da > 0:
                    best, best_id = dp / da, u
                    stop = p + best * max(rest[b] - a, np.float32(0))
                i += 1
            if i == n_heads:  # the list was too short: look at all of the bucket
                for u in range(bounds[b], bounds[b + 1]):
                    if products[u] > stop:
                        da, dp = distance[u] - a, products[u] - p
                        if dp > best * da and da > 0:
                            best, best_id = dp / da, u
        if best_id < 0:
            return n
        rates[n], ids[n] = best, best_id
        n += 1
        if n == len(rates):
            return n
        p, a = products[best_id], distance[best_id]
        best, best_id = least_rate, -1
        greatest = _rates_from(near_products, near_squared, p, a, room)
        if greatest > best:
            best = greatest
            for k in range(len(near)):
                if room[k] == greatest:
                    best_id = near[k]


@njit(nogil=True, cache=True)
def _find_near(distance, start, bounds, n_near, near, near_squared, rest):
    """Find each bucket's nearest candidates but the start, and the least distance of the rest."""
    for b in range(len(rest)):
        kept, chosen = near_squared[b * n_near :][:n_near], near[b * n_near :][:n_near]
        kept[:], chosen[:] = np.inf, 0
        least = np.float32(np.inf)
        for u in range(bounds[b], bounds[b + 1]):
            value = distance[u]
            if value >= kept[-1] or u == start:
                if value < least and u != start:
                    least = value
                continue
            least = min(least, kept[-1])
            j = n_near - 1
            while j > 0 and kept[j - 1] > value:
                kept[j], chosen[j] = kept[j - 1], chosen[j - 1]
                j -= 1
            kept[j], chosen[j] = value, u
        rest[b] = least


@njit(nogil=True, cache=True)
def _gather(by_candidate, near, near_products):
    """Copy the near candidates' products, one draw a row; 8 at a time, to stay in the cache."""
    for first in range(0, len(near), 8):
        for s in range(len(near_products)):
            for k in range(first, min(first + 8, len(near))):
                near_products[s, k] = by_candidate[near[k], s]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _first_rates(by_candidate, own, near, near_squared, start_squared, best, best_id):
    """Raise each draw's best rate from the start by the near candidates."""
    for k in range(len(near)):
        da = near_squared[k] - start_squared
        if not 0 < da < np.inf:
            continue
        inverse, products = np.float32(1) / da, by_candidate[near[k]]
        for s in range(len(best)):
            rate = (products[s] - own[s]) * inverse
            is_better = rate > best[s]
            best[s] = rate if is_better else best[s]
            best_id[s] = near[k] if is_better else best_id[s]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _rates_from(near_products, near_squared, p, a, room):
    """Write the near candidates' rates from the line (p, a) into room; return the greatest."""
    greatest = np.float32(-1)
    for k in range(len(room)):
        da = near_squared[k] - a
        rate = (near_products[k] - p) / max(da, np.float32(1e-30))
        room[k] = rate if da > 0 else np.float32(-1)
        greatest = max(greatest, room[k])
    return greatest


@njit(nogil=True, cache=True)
def count_outcomes(tokens, starts, rates, ids, counts, half_etas, n_candidates, n_w, s_w):
    """Count, at each η, the draws that return the token, and the distinct candidates returned.

    Parameters
    ----------
    tokens, starts : int64 array (T,)
        Each token's own place among the candidates (−1 where it is none), and its start.
    rates, ids, counts : arrays
        As `walk_tokens` wrote them.
    half_etas : float32 array (G,)
        η/2, descending.
    n_w, s_w : uint16 array (T, G)
        Written.
    """
    stamps = np.zeros(n_candidates, np.int64)
    stamp = 0
    here = np.empty(counts.shape[1], np.int32)
    for i in range(len(counts)):
        here[:] = 0
        for g in range(len(half_etas)):
            stamp += 1
            same, distinct = 0, 0
            for s in range(counts.shape[1]):
                while here[s] < counts[i, s] and rates[i, s, here[s]] > half_etas[g]:
                    here[s] += 1
                u = starts[i] if here[s] == 0 else ids[i, s, here[s] - 1]
                same += u == tokens[i]
                if stamps[u] != stamp:
                    stamps[u] = stamp
                    distinct += 1
            n_w[i, g], s_w[i, g] = same, distinct
