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

__all__ = ["CHUNK", "walk_tokens"]

CHUNK = 8
"""Candidates of a list that are compared at once: their products and names fill a cache line."""

LANES = 16
"""Distances of which the least are found at once; most lanes hold nothing near."""


@njit(nogil=True, cache=True)
def walk_tokens(
    squared, starts, products, by_candidate, lists, list_ids, tops, bounds, n_near, n_few,
    least_rate, rates, ids, counts,
):  # fmt: skip
    """Fill the envelope of every (token, draw): crossing rates, descending, and candidates.

    The draws are the outer loop: a draw's lists stay in the processor's cache for all tokens, so
    give as many tokens at a time as have their distances fit beside them (8 or so).

    Parameters
    ----------
    squared : float32 array (T, U)
        Squared distance of each token to each candidate.
    starts : int64 array (T,)
        The candidate nearest to each token: the token itself where it is a candidate.
    products, by_candidate : float32 array (S, U), (U, S)
        Draw times candidate, in both orders of memory.
    lists, list_ids : float32, uint32 (J, S, B, 2, CHUNK)
        The greatest products of each draw and bucket, descending, J times CHUNK of them, in
        `lists[:, :, :, 0]`, and their candidates in `list_ids[:, :, :, 1]`: one memory, two types.
    tops : float32 array (S, B)
        The greatest product of each bucket.
    bounds : int64 array (B + 1,)
        Where buckets begin and end.
    n_near, n_few : int
        Nearest candidates tried first, a bucket: for the first crossing, where all draws compare
        with them at once, and for the later ones.
    least_rate : float32
        η/2 at the end of the walk.
    rates, ids, counts : float32 (T, S, C), int32 (T, S, C), int32 (T, S)
        Written: crossings, the candidate after each, and how many there are. A walk ends after C.
    """
    n_draws, n_buckets = tops.shape
    n_tokens, n_all = len(squared), -(-n_buckets * n_near // 4) * 4
    near = np.zeros((n_tokens, n_all), np.uint32)
    near_squared = np.full((n_tokens, n_all), np.float32(np.inf))
    rest = np.empty((n_tokens, n_buckets), np.float32)
    best = np.empty((n_tokens, n_draws), np.float32)
    best_id = np.empty((n_tokens, n_draws), np.int32)
    few = np.empty((n_tokens, n_buckets * n_few), np.uint32)
    few_squared = np.empty((n_tokens, n_buckets * n_few), np.float32)
    few_rest = np.empty((n_tokens, n_buckets), np.float32)
    room, live = np.empty(max(n_all, CHUNK), np.float32), np.empty(n_buckets, np.float32)
    kept, chosen = np.empty(n_near + 1, np.float32), np.empty(n_near + 1, np.uint32)
    lanes = np.empty(LANES, np.float32)
    best[:], best_id[:] = least_rate, -1
    for i in range(n_tokens):
        distance, start = squared[i], starts[i]
        _find_near(squared, i, start, bounds, n_near, near, near_squared, rest, kept, chosen, lanes)
        _first_rates(
            by_candidate, start, near[i], near_squared[i], distance[start], best[i], best_id[i]
        )  # fmt: skip
        for b in range(n_buckets):
            low, high = b * n_near, b * n_near + n_few
            few[i, b * n_few : (b + 1) * n_few] = near[i, low:high]
            few_squared[i, b * n_few : (b + 1) * n_few] = near_squared[i, low:high]
            few_rest[i, b] = rest[i, b] if n_few == n_near else near_squared[i, high]
    for s in range(n_draws):
        for i in range(n_tokens):
            counts[i, s] = _walk(
                i, s, best[i, s], best_id[i, s], starts[i], squared, few, few_squared, rest,
                few_rest, lists, list_ids, tops, bounds, products, by_candidate, least_rate,
                rates, ids, room, live,
            )  # fmt: skip


# The functions below take whole arrays and indices: a view would cost more than their work.


@njit(nogil=True, cache=True)
def _walk(
    i, s, best, best_id, start, squared, near, near_squared, rest, later_rest, lists, list_ids,
    tops, bounds, products, by_candidate, least_rate, rates, ids, room, live,
):  # fmt: skip
    """Walk one envelope from the start's line (p, a); return the number of crossings."""
    n_chunks, n_buckets, n = lists.shape[0], lists.shape[2], 0
    p, a = by_candidate[start, s], squared[i, start]
    best_p = by_candidate[best_id, s] if best_id >= 0 else p
    while True:
        _margins(tops, s, rest, i, p, a, best, live)
        for b in range(n_buckets):
            if live[b] <= 0:
                continue
            # Below this product no candidate of the bucket crosses earlier than the best.
            stop = p + best * max(rest[i, b] - a, np.float32(0))
            j = 0
            while j < n_chunks and lists[j, s, b, 0, 0] > stop:
                _leads(lists, list_ids, j, s, b, squared, i, p, a, best, room)
                for k in range(CHUNK):
                    if room[k] > 0:
                        u = list_ids[j, s, b, 1, k]
                        da, dp = squared[i, u] - a, lists[j, s, b, 0, k] - p
                        if dp > best * da and da > 0:
                            best, best_id, best_p = dp / da, u, lists[j, s, b, 0, k]
                            stop = p + best * max(rest[i, b] - a, np.float32(0))
                j += 1
            if j == n_chunks:  # the list was too short: look at all of the bucket
                for u in range(bounds[b], bounds[b + 1]):
                    if products[s, u] > stop:
                        da, dp = squared[i, u] - a, products[s, u] - p
                        if dp > best * da and da > 0:
                            best, best_id, best_p = dp / da, u, products[s, u]
        if best_id < 0:
            return n
        rates[i, s, n], ids[i, s, n] = best, best_id
        n += 1
        if n == rates.shape[2]:
            return n
        p, a = best_p, squared[i, best_id]
        best, best_id, rest = least_rate, -1, later_rest
        greatest = _near_rates(by_candidate, s, near, near_squared, i, p, a, room)
        if greatest > best:
            best, k = greatest, 0
            while room[k] != greatest:
                k += 1
            best_id, best_p = near[i, k], by_candidate[near[i, k], s]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _margins(tops, s, rest, i, p, a, best, live):
    """Write by how much each bucket's greatest product is above what could beat the best."""
    for b in range(len(live)):
        live[b] = tops[s, b] - (p + best * max(rest[i, b] - a, np.float32(0)))


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _leads(lists, list_ids, j, s, b, squared, i, p, a, best, room):
    """Write how far each candidate of a list's chunk is above a rate of `best`.

    Compared by products: a division each would take most of the time. The loops stand apart for
    the compiler to vectorise the second.
    """
    for k in range(CHUNK):
        room[k] = squared[i, list_ids[j, s, b, 1, k]]
    for k in range(CHUNK):
        room[k] = (lists[j, s, b, 0, k] - p) - best * (room[k] - a)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan", "ninf"})
def _near_rates(by_candidate, s, near, near_squared, i, p, a, room):
    """Write the near candidates' rates from the line (p, a) into room; return the greatest."""
    for k in range(near.shape[1]):
        room[k] = by_candidate[near[i, k], s]
    for k in range(near.shape[1]):
        da = near_squared[i, k] - a
        rate = (room[k] - p) / (da if da > np.float32(1e-30) else np.float32(1e-30))
        room[k] = rate if da > 0 else np.float32(-1)
    greatest = np.float32(-1)
    for k in range(near.shape[1]):
        greatest = room[k] if room[k] > greatest else greatest
    return greatest


@njit(nogil=True, cache=True)
def _find_near(squared, i, start, bounds, n_near, near, near_squared, rest, kept, chosen, lanes):
    """Find each bucket's nearest candidates but the start, and the least distance of the rest."""
    for b in range(rest.shape[1]):
        kept[:], chosen[:] = np.inf, 0
        high = bounds[b + 1]
        for low in range(bounds[b], high, 4 * LANES):
            if low + 4 * LANES > high:
                for u in range(low, high):
                    _keep(squared[i, u], u, start, n_near, kept, chosen)
                continue
            _least_of_four(squared, i, low, lanes)
            for k in range(LANES):
                if lanes[k] < kept[n_near]:
                    for u in range(low + k, low + 4 * LANES, LANES):
                        _keep(squared[i, u], u, start, n_near, kept, chosen)
        for k in range(n_near):
            near[i, b * n_near + k], near_squared[i, b * n_near + k] = chosen[k], kept[k]
        rest[i, b] = kept[n_near]


@njit(nogil=True, cache=True)
def _keep(value, u, start, n_near, kept, chosen):
    """Put a candidate among the n_near + 1 least, ascending, if it belongs there."""
    if value >= kept[n_near] or u == start:
        return
    j = n_near
    while j > 0 and kept[j - 1] > value:
        kept[j], chosen[j] = kept[j - 1], chosen[j - 1]
        j -= 1
    kept[j], chosen[j] = value, u


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _least_of_four(squared, i, low, lanes):
    """Write the least of the distances that stand LANES apart, four a lane."""
    for k in range(LANES):
        one, two = squared[i, low + k], squared[i, low + LANES + k]
        three, four = squared[i, low + 2 * LANES + k], squared[i, low + 3 * LANES + k]
        left, right = one if one < two else two, three if three < four else four
        lanes[k] = left if left < right else right


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _first_rates(by_candidate, start, near, near_squared, start_squared, best, best_id):
    """Raise each draw's best rate from the start by the near candidates, four at a time."""
    none, one = np.float32(0), np.float32(1)
    for k in range(0, len(near), 4):
        u0, u1, u2, u3 = near[k], near[k + 1], near[k + 2], near[k + 3]
        d0, d1 = near_squared[k] - start_squared, near_squared[k + 1] - start_squared
        d2, d3 = near_squared[k + 2] - start_squared, near_squared[k + 3] - start_squared
        i0, i1 = one / d0 if d0 > 0 else none, one / d1 if d1 > 0 else none
        i2, i3 = one / d2 if d2 > 0 else none, one / d3 if d3 > 0 else none
        n0, n1, n2, n3 = np.int32(u0), np.int32(u1), np.int32(u2), np.int32(u3)
        for s in range(len(best)):
            own = by_candidate[start, s]
            r0, r1 = (by_candidate[u0, s] - own) * i0, (by_candidate[u1, s] - own) * i1
            r2, r3 = (by_candidate[u2, s] - own) * i2, (by_candidate[u3, s] - own) * i3
            ra, na = (r1, n1) if r1 > r0 else (r0, n0)
            rb, nb = (r3, n3) if r3 > r2 else (r2, n2)
            rc, nc = (rb, nb) if rb > ra else (ra, na)
            best_id[s] = nc if rc > best[s] else best_id[s]
            best[s] = rc if rc > best[s] else best[s]
