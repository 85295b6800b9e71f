"""Where ids lie among others that ascend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["places_among"]


def places_among(
    ids: NDArray[np.integer], asked: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each asked id among ascending ones, and whether it is one of them.

    Parameters
    ----------
    ids : int array (n,)
        Ascending, each once; at least one.
    asked : int array
        Of any shape, which both answers have.

    Returns
    -------
    places : int64 array
        Of an id that is not there: some place that is.
    is_there : bool array

    Examples
    --------
    >>> places, is_there = places_among(np.array([2, 5, 9]), np.array([5, 6]))
    >>> int(places[0]), is_there.tolist()
    (1, [True, False])
    """
    places = np.searchsorted(ids, asked).clip(max=len(ids) - 1)
    return places, np.asarray(ids[places] == asked)
