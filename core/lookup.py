"""Look up ids in a sorted array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def lookup_sorted(
    ids: NDArray[np.integer], asked: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look up ids in a sorted array; return their positions, and whether each one is present.

    Parameters
    ----------
    ids : int array (n,)
        Ascending, each once; at least one.
    asked : int array
        Any shape; both results have the same.

    Returns
    -------
    places : int64 array
        Index of each id; for an absent id, some valid index.
    is_there : bool array

    Examples
    --------
    >>> places, is_there = lookup_sorted(np.array([2, 5, 9]), np.array([5, 6]))
    >>> int(places[0]), is_there.tolist()
    (1, [True, False])
    """
    places = np.searchsorted(ids, asked).clip(max=len(ids) - 1)
    return places, np.asarray(ids[places] == asked)
