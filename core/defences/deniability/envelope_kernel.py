"""The compiled inner loops of the deniability engine: lower envelopes of lines, with pruning.

Every draw s scales with 1/η, so the distance of candidate u to the noisy vector of token w is, up
to a term that is the same for all u, the line a[u] − x·p[s, u] in x = 2/η, where a[u] is the
squared distance of the two tokens and p[s, u] the product of the draw and the candidate. The
candidate returned at η is the lowest line at x = 2/η. Starting at x = 0 (no noise), each step of
the walk finds the next line to become the lowest: the one of greatest rate

    (p[s, u] − p[s, cur]) / (a[u] − a[cur]),

which is η/2 at the crossing. Candidates are sorted by norm and cut into buckets. In each bucket the
candidates nearest to the token are tried first; the rest is scanned by descending p until no rate
can exceed the best, because a is at least that of the bucket's nearest remaining candidate.

Compiled by numba for this machine; every function releases the interpreter's lock, so that threads
run in parallel.

Tokens walk a draw's lists together, so that a candidate's distances to all of them lie side by side
in memory: one load instead of as many as there are tokens. The two innermost steps are written in
the compiler's own vectors (llvmlite): from loops, it makes code that is a third slower, since it
cannot know that the arrays do not overlap.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from leakscope.core.compiled import njit

CHUNK = 8
"""Candidates of a list that are compared at once: their products and names fill a cache line."""

WIDTH = 16
"""Tokens that walk together: the distances of a candidate to them fill a cache line."""

_FLOATS, _INTS = ir.VectorType(ir.FloatType(), WIDTH), ir.VectorType(ir.IntType(32), WIDTH)


@njit(nogil=True, cache=True)
def transpose_lanes(squared, first, n, turned):
    """Copy n rows of `squared` from `first` on into the columns of `turned`, padded to WIDTH.

    Parameters
    ----------
    squared : float32 array (T, U)
        Squared distance of each token to each candidate.
    turned : float32 array (U, WIDTH)
        Written.
    """
    for low in range(0, squared.shape[1], 64):
        high = min(low + 64, squared.shape[1])
        for lane in range(WIDTH):
            i = first + min(lane, n - 1)
            for u in range(low, high):
                turned[u, lane] = squared[i, u]


@njit(nogil=True, cache=True)
def scan_draw(s, turned, slack, lists, list_ids, bounds, products, p, a, best, chosen):
    """Update each lane's best crossing rate and its candidate, in place, for one draw.

    A bucket is left as soon as none of its lines can cross any lane's earlier than its best.

    Parameters
    ----------
    s : int
        The draw.
    turned : float32 array (U, WIDTH)
        Squared distances, as `transpose_lanes` wrote them.
    slack : float32 array (B, WIDTH)
        How much farther the rest of each bucket is than the lane's own line starts, at least.
    lists, list_ids, bounds, products : arrays
        As `walk_tokens` takes them.
    p, a : float32 arrays (WIDTH,)
        Each lane's line: its product and its squared distance.
    best, chosen : float32, int32 arrays (WIDTH,)
        Read and written.
    """
    n_chunks = lists.shape[0]
    for b in range(lists.shape[2]):
        j, least = 0, _least_stop(p, best, slack, b)
        while j < n_chunks and lists[j, s, b, 0, 0] > least:
            _raise_rates(turned, lists, list_ids, (j, s, b), p, a, best, chosen)
            least = _least_stop(p, best, slack, b)
            j += 1
        if j == n_chunks:  # the list was too short: look at all of the bucket
            for u in range(bounds[b], bounds[b + 1]):
                if products[s, u] > least:
                    for lane in range(WIDTH):
                        da, dp = turned[u, lane] - a[lane], products[s, u] - p[lane]
                        if da > 0 and dp > best[lane] * da:
                            best[lane], chosen[lane] = dp / da, u


@intrinsic
def _raise_rates(typingctx, turned, lists, list_ids, place, p, a, best, chosen):
    """Emit code that updates all lanes' best rates with one chunk of candidates, without a branch.

    In each lane: rate = (product − p) / (distance − a) where distance > a; the greater of it and
    `best` is kept in `best`, with its candidate in `chosen`.
    """
    signature = types.void(turned, lists, list_ids, place, p, a, best, chosen)

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        arrays = [
            context.make_array(k)(context, builder, v) if isinstance(k, types.Array) else v
            for k, v in zip(kinds, arguments, strict=True)
        ]

        def at(which, indices):
            return cgutils.get_item_pointer(
                context, builder, kinds[which], arrays[which], indices, wraparound=False
            )

        where = [builder.extract_value(arguments[3], k) for k in range(3)]
        zero, one = ir.Constant(ir.IntType(64), 0), ir.Constant(ir.IntType(64), 1)
        own, start = (_load(builder, at(k, [zero]), _FLOATS) for k in (4, 5))
        best_at = builder.bitcast(at(6, [zero]), _FLOATS.as_pointer())
        chosen_at = builder.bitcast(at(7, [zero]), _INTS.as_pointer())
        greatest, names = _load(builder, best_at, _FLOATS), _load(builder, chosen_at, _INTS)
        least, never = (ir.Constant(_FLOATS, [x] * WIDTH) for x in (1e-30, 1e30))
        for k in range(CHUNK):
            element = ir.Constant(ir.IntType(64), k)
            product = builder.load(at(1, [*where, zero, element]))
            name = builder.load(at(2, [*where, one, element]))
            row = at(0, [builder.zext(name, ir.IntType(64)), zero])
            rise = builder.fsub(_load(builder, row, _FLOATS), start)
            is_ahead = builder.fcmp_ordered(">", rise, least)
            gain = builder.fsub(_broadcast(builder, product, _FLOATS), own)
            rate = builder.fdiv(gain, builder.select(is_ahead, rise, never))
            is_better = builder.fcmp_ordered(">", rate, greatest)
            greatest = builder.select(is_better, rate, greatest)
            names = builder.select(is_better, _broadcast(builder, name, _INTS), names)
        builder.store(greatest, best_at).align = 4
        builder.store(names, chosen_at).align = 4
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _least_stop(typingctx, p, best, slack, b):
    """Emit code that returns the least p + best·slack[b] over lanes: no lane needs less."""
    signature = types.float32(p, best, slack, types.int64)

    def codegen(context, builder, signature, arguments):
        def vector(which, indices):
            array = context.make_array(signature.args[which])(context, builder, arguments[which])
            place = cgutils.get_item_pointer(
                context, builder, signature.args[which], array, indices, wraparound=False
            )
            return _load(builder, place, _FLOATS)

        zero = ir.Constant(ir.IntType(64), 0)
        reach = builder.fmul(vector(1, [zero]), vector(2, [arguments[3], zero]))
        stops = builder.fadd(vector(0, [zero]), reach)
        least = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.FloatType(), [_FLOATS]),
            f"llvm.vector.reduce.fmin.v{WIDTH}f32",
        )
        return builder.call(least, [stops], fastmath=("nnan",))

    return signature, codegen


def _load(builder, pointer, vector):
    """Emit code that loads a vector from memory that is aligned to 4 bytes only."""
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = 4
    return loaded


def _broadcast(builder, value, vector):
    """Emit code that copies one value into all lanes of a vector."""
    nothing, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    in_first = builder.insert_element(nothing, value, first)
    return builder.shuffle_vector(in_first, nothing, ir.Constant(_INTS, [0] * WIDTH))


LANES = 16
"""Distances of which the least are found at once; most lanes hold nothing near."""

FAR = np.float32(1e15)
"""A product that no candidate reaches: the line of a lane that has ended."""


@njit(nogil=True, cache=True)
def walk_tokens(
    squared,
    starts,
    products,
    by_candidate,
    lists,
    list_ids,
    bounds,
    n_near,
    n_few,
    least_rate,
    turned,
    rates,
    ids,
    counts,
):
    """Write the envelope of every (token, draw): crossing rates, descending, and candidates.

    WIDTH tokens are processed together, draw by draw, so that a draw's lists stay in the
    processor's cache. Fastest if the tokens' norms are alike, since they then read the same
    candidates.

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
    bounds : int64 array (B + 1,)
        Where buckets begin and end.
    n_near, n_few : int
        Nearest candidates tried first, a bucket: for the first crossing, where all draws compare
        with them at once, and for the later ones.
    least_rate : float32
        η/2 at the end of the walk.
    turned : float32 array (U, WIDTH)
        Room to work in.
    rates, ids, counts : float32 (T, S, C), int32 (T, S, C), int32 (T, S)
        Written: crossings, the candidate after each, and how many there are. A walk ends after C.
    """
    n_draws, n_buckets = len(products), len(bounds) - 1
    n_all = -(-n_buckets * n_near // 4) * 4
    near = np.zeros((WIDTH, n_all), np.uint32)
    near_squared = np.full((WIDTH, n_all), np.float32(np.inf))
    rest = np.empty((WIDTH, n_buckets), np.float32)
    best, best_id = np.empty((WIDTH, n_draws), np.float32), np.empty((WIDTH, n_draws), np.int32)
    for first in range(0, len(squared), WIDTH):
        n = min(WIDTH, len(squared) - first)
        best[:], best_id[:] = least_rate, -1
        for lane in range(n):
            i = first + lane
            start = starts[i]
            _find_near(
                squared[i], start, bounds, n_near, near[lane], near_squared[lane], rest[lane]
            )
            _first_rates(
                by_candidate,
                start,
                near[lane],
                near_squared[lane],
                squared[i, start],
                best[lane],
                best_id[lane],
            )
        transpose_lanes(squared, first, n, turned)
        rows = slice(first, first + n)
        _walk_together(
            starts[rows],
            near,
            near_squared,
            rest,
            best,
            best_id,
            n_near,
            n_few,
            products,
            by_candidate,
            lists,
            list_ids,
            bounds,
            least_rate,
            turned,
            rates[rows],
            ids[rows],
            counts[rows],
        )


@njit(nogil=True, cache=True)
def _walk_together(
    starts,
    near,
    near_squared,
    rest,
    best,
    best_id,
    n_near,
    n_few,
    products,
    by_candidate,
    lists,
    list_ids,
    bounds,
    least_rate,
    turned,
    rates,
    ids,
    counts,
):
    """Write the envelopes of up to WIDTH tokens, one per lane, starting from near candidates."""
    n, n_buckets, n_steps = len(starts), len(bounds) - 1, rates.shape[2]
    few, few_squared, few_rest = _nearest_few(near, near_squared, rest, n_near, n_few)
    p, a = np.empty(WIDTH, np.float32), np.empty(WIDTH, np.float32)
    rate, chosen = np.empty(WIDTH, np.float32), np.empty(WIDTH, np.int32)
    own, slack = np.zeros(WIDTH, np.float32), np.zeros((n_buckets, WIDTH), np.float32)
    later_slack, room = np.zeros_like(slack), np.empty(few.shape[1], np.float32)
    for lane in range(n):
        own[lane] = turned[starts[lane], lane]
        for b in range(n_buckets):
            slack[b, lane] = max(rest[lane, b] - own[lane], np.float32(0))
    for s in range(len(products)):
        p[:], rate[:], chosen[:] = FAR, 1, -1
        for lane in range(n):
            p[lane], rate[lane] = by_candidate[starts[lane], s], best[lane, s]
            chosen[lane] = best_id[lane, s]
        scan_draw(s, turned, slack, lists, list_ids, bounds, products, p, own, rate, chosen)
        counts[:, s] = 0
        step = 0
        while _write_step(s, step, rate, chosen, rates, ids, counts) and step + 1 < n_steps:
            step += 1
            for lane in range(n):
                u = chosen[lane]
                if u < 0:
                    p[lane], rate[lane] = FAR, 1
                    continue
                p[lane], a[lane] = by_candidate[u, s], turned[u, lane]
                greatest = _near_rates(
                    by_candidate, s, few, few_squared, lane, p[lane], a[lane], room
                )
                rate[lane], chosen[lane] = least_rate, -1
                if greatest > least_rate:
                    k = 0
                    while room[k] != greatest:
                        k += 1
                    rate[lane], chosen[lane] = greatest, few[lane, k]
                for b in range(n_buckets):
                    later_slack[b, lane] = max(few_rest[lane, b] - a[lane], np.float32(0))
            scan_draw(s, turned, later_slack, lists, list_ids, bounds, products, p, a, rate, chosen)


@njit(nogil=True, cache=True)
def _write_step(s, step, rate, chosen, rates, ids, counts):
    """Write each lane's crossing of one step, if it has one; return how many lanes crossed."""
    n_crossed = 0
    for lane in range(len(counts)):
        if chosen[lane] >= 0:
            rates[lane, s, step], ids[lane, s, step] = rate[lane], chosen[lane]
            counts[lane, s] = step + 1
            n_crossed += 1
    return n_crossed


@njit(nogil=True, cache=True)
def _nearest_few(near, near_squared, rest, n_near, n_few):
    """Return each bucket's n_few nearest candidates, their distances and the next distance."""
    n_buckets = rest.shape[1]
    few = np.empty((WIDTH, n_buckets * n_few), np.uint32)
    few_squared = np.empty((WIDTH, n_buckets * n_few), np.float32)
    few_rest = np.empty((WIDTH, n_buckets), np.float32)
    for b in range(n_buckets):
        low, high = b * n_near, b * n_near + n_few
        few[:, b * n_few : (b + 1) * n_few] = near[:, low:high]
        few_squared[:, b * n_few : (b + 1) * n_few] = near_squared[:, low:high]
        few_rest[:, b] = rest[:, b] if n_few == n_near else near_squared[:, high]
    return few, few_squared, few_rest


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan", "ninf"})
def _near_rates(by_candidate, s, near, near_squared, lane, p, a, room):
    """Write the rates at which near candidates' lines cross line (p, a); return the greatest."""
    for k in range(near.shape[1]):
        room[k] = by_candidate[near[lane, k], s]
    for k in range(near.shape[1]):
        da = near_squared[lane, k] - a
        rate = (room[k] - p) / (da if da > np.float32(1e-30) else np.float32(1e-30))
        room[k] = rate if da > 0 else np.float32(-1)
    greatest = np.float32(-1)
    for k in range(near.shape[1]):
        greatest = room[k] if room[k] > greatest else greatest
    return greatest


@njit(nogil=True, cache=True)
def _find_near(distance, start, bounds, n_near, near, near_squared, rest):
    """Write each bucket's nearest candidates except the start, and the next smallest distance."""
    kept, chosen = np.empty(n_near + 1, np.float32), np.empty(n_near + 1, np.uint32)
    lanes = np.empty(LANES, np.float32)
    for b in range(len(rest)):
        kept[:], chosen[:] = np.inf, 0
        high = bounds[b + 1]
        for low in range(bounds[b], high, 4 * LANES):
            if low + 4 * LANES > high:
                for u in range(low, high):
                    _insert(distance[u], u, start, n_near, kept, chosen)
                continue
            _least_of_four(distance, low, lanes)
            for k in range(LANES):
                if lanes[k] < kept[n_near]:
                    for u in range(low + k, low + 4 * LANES, LANES):
                        _insert(distance[u], u, start, n_near, kept, chosen)
        near[b * n_near : (b + 1) * n_near] = chosen[:n_near]
        near_squared[b * n_near : (b + 1) * n_near] = kept[:n_near]
        rest[b] = kept[n_near]


@njit(nogil=True, cache=True)
def _insert(value, u, start, n_near, kept, chosen):
    """Insert a candidate into the ascending list of the n_near + 1 least distances, if it fits."""
    if value >= kept[n_near] or u == start:
        return
    j = n_near
    while j > 0 and kept[j - 1] > value:
        kept[j], chosen[j] = kept[j - 1], chosen[j - 1]
        j -= 1
    kept[j], chosen[j] = value, u


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _least_of_four(distance, low, lanes):
    """Write into each lane the least of four distances that lie LANES apart."""
    for k in range(LANES):
        one, two = distance[low + k], distance[low + LANES + k]
        three, four = distance[low + 2 * LANES + k], distance[low + 3 * LANES + k]
        left, right = one if one < two else two, three if three < four else four
        lanes[k] = left if left < right else right


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc", "nnan"})
def _first_rates(by_candidate, start, near, near_squared, start_squared, best, best_id):
    """Update each draw's best first crossing with the near candidates, four at a time."""
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


@njit(nogil=True, cache=True)
def count_outcomes(tokens, starts, rates, ids, counts, half_etas, seen, returned, n_w, s_w):
    """Write, for each token and η, how many draws return it and how many distinct candidates come.

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
        Work space, all 0 again on return: allocating it would cost as much as the counting.
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
                        high = _count_at_least(half_etas, first, width, rates[i, s, n])
                    if high > low:
                        if u == tokens[i]:
                            steps[low] += 1
                            steps[high] -= 1
                        if seen[u] == 0:
                            returned[n_returned] = u
                            n_returned += 1
                        seen[u] |= _low_bits(high) & ~_low_bits(low)
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
def _low_bits(n):
    """Return a 64-bit mask whose n lowest bits are set."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF)
    return full if n >= 64 else ~(full << np.uint64(n))


@njit(nogil=True, cache=True)
def _count_at_least(half_etas, first, width, rate):
    """Return how many of `width` descending values, from `first` on, are at least the rate."""
    n = 0
    for g in range(first, first + width):
        n += half_etas[g] >= rate
    return n
