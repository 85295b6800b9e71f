"""The compiled loop of the quantised search: selects the candidates that can be among the nearest.

It reads a few numbers of large arrays, which would cost more to gather than to read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.compiled import njit

GROUP = 16
"""Candidates of a group, of which usually only the greatest value is read."""

_ROUNDING = 2.0**-22
"""More than the share by which a float32 is rounded."""

Here = tuple[NDArray[Any], NDArray[np.float32], int]
Vectors = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]
Bounds = tuple[NDArray[np.float64], ...]
Kept = tuple[NDArray[np.float64], NDArray[np.int64]]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _exact(query: NDArray[np.float32], candidate: NDArray[np.float32], half_square: float) -> float:
    """Return the exact score of a candidate for a query: the product less the half square."""
    total = 0.0
    for j in range(len(query)):
        total += np.float64(query[j]) * np.float64(candidate[j])
    return total - half_square


@njit(cache=True, nogil=True)
def _insert(
    scores: NDArray[np.float64], places: NDArray[np.int64], score: float, place: int
) -> None:
    """Insert a candidate into a query's list, ordered by score, then index; the last drops out."""
    i = len(scores) - 1
    if score < scores[i] or (score == scores[i] and place > places[i]):
        return
    while i > 0 and (scores[i - 1] < score or (scores[i - 1] == score and places[i - 1] > place)):
        scores[i], places[i] = scores[i - 1], places[i - 1]
        i -= 1
    scores[i], places[i] = score, place


def initial_floor(bounds: Bounds) -> NDArray[np.float32]:
    """Return each query's initial score floor: the lowest float32; NaN for an unbounded error."""
    most = np.finfo(np.float32).max
    return np.where(np.isfinite(bounds[2]), -most, np.nan).astype(np.float32)


@njit(cache=True, nogil=True)
def _score_group(
    here: Here,
    group: int,
    row: int,
    weight: float,
    vectors: Vectors,
    bounds: Bounds,
    floor: NDArray[np.float32],
    kept: Kept,
) -> None:
    """Score exactly those candidates of a group that may be among a query's nearest."""
    (products, halves, n_before), (queries, known, half_squares) = here, vectors
    (unit, offset, error), (scores, places) = bounds, kept
    for i in range(group * GROUP, (group + 1) * GROUP):
        if np.float32(products[i, row]) - weight * halves[i] >= floor[row]:
            place = n_before + i
            score = _exact(queries[row], known[place], half_squares[place])
            _insert(scores[row], places[row], score, place)
            least = scores[row, -1]  # of the n nearest so far
            if least > -np.inf:
                least = (least + offset[row] - error[row]) / unit[row]
                floor[row] = least - _ROUNDING * abs(least)


@njit(cache=True, nogil=True)
def update_nearest(
    here: Here, vectors: Vectors, bounds: Bounds, floor: NDArray[np.float32], kept: Kept
) -> None:
    """Update each query's n nearest candidates with the products of one piece of candidates.

    The value of a candidate is its product less its half in the same unit.

    Parameters
    ----------
    here : tuple
        Products, int32 or float32 (whole groups of candidates, m); float32 halves, (candidates,);
        and the place of the first of these candidates among all.
    vectors : tuple
        Queries (m, n) and candidates (U, n) in float32, and ½‖u‖² in float64 (U,).
    bounds : tuple
        Unit, offset and error of the products, float64 (m,): see `sieve`.
    floor : float32 array (m,)
        What the values of the n nearest cannot lie below; raised here.
    kept : tuple
        Exact scores, descending, and places of the nearest, float64 and int64 (m, n); of equals,
        the first.
    """
    products, halves, _ = here
    n_groups, m = len(products) // GROUP, products.shape[1]
    weights = (1.0 / bounds[0]).astype(np.float32)
    leaders = np.full((n_groups, m), -np.inf, np.float32)
    # The group with the greatest value comes first: it raises the floor for the others.
    first, greatest = np.zeros(m, np.int32), np.full(m, -np.inf, np.float32)
    for group in range(n_groups):
        for i in range(group * GROUP, (group + 1) * GROUP):
            for row in range(m):
                value = np.float32(products[i, row]) - weights[row] * halves[i]
                leaders[group, row] = max(leaders[group, row], value)
        for row in range(m):
            if leaders[group, row] > greatest[row]:
                first[row], greatest[row] = group, leaders[group, row]
    # One call for both: compiled twice, it could add in another order, and equals would differ.
    for turn in range(-1, n_groups):
        for row in range(m):
            group = first[row] if turn < 0 else turn
            is_new = turn < 0 or group != first[row]
            if leaders[group, row] >= floor[row] and is_new:
                _score_group(here, group, row, weights[row], vectors, bounds, floor, kept)
