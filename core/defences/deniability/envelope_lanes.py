"""The first crossings of several envelopes at once: one token per lane of a SIMD vector.

Tokens walk a draw's lists together, so that a candidate's distances to all of them lie side by side
in memory: one load instead of as many as there are tokens. The two innermost steps are written in
the compiler's own vectors (llvmlite): from loops, it makes code that is a third slower, since it
cannot know that the arrays do not overlap.
"""

from __future__ import annotations

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
    """Transpose n rows of `squared` from `first` on into `turned`, repeating the last up to WIDTH.

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
    """Update each lane's best crossing rate, and its candidate, with the candidates of one draw.

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
    """Compare one chunk of a list, at `place` (j, s, b), with all lanes, without a branch.

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
    """Return the least p + best·slack[b] over all lanes: no lane needs a lower product."""
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
    """Emit the load of a vector; arrays guarantee an alignment of 4 bytes only."""
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()))
    loaded.align = 4
    return loaded


def _broadcast(builder, value, vector):
    """Emit a vector that holds the value in all its lanes."""
    nothing, first = ir.Constant(vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    in_first = builder.insert_element(nothing, value, first)
    return builder.shuffle_vector(in_first, nothing, ir.Constant(_INTS, [0] * WIDTH))
