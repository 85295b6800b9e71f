"""A utility measure without a task: how many nearest neighbours a defence preserves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import percent_interval
from leakscope.core.protocols import Vectors
from leakscope.core.results import Score
from leakscope.core.units import units_of_vectors


def preserved_neighbours(plain: Vectors, protected: Vectors, *, seed: int = 0) -> Score:
    """Return the percentage of texts whose nearest other text (cosine) a defence leaves unchanged.

    Parameters
    ----------
    plain, protected : ndarray of float32, shapes (n, d) and (n, m)
        Vectors of the same n texts.
    seed : int
        Of the interval.

    Returns
    -------
    Score
        In per cent of the texts; guessing draws one of the n − 1 others.

    Raises
    ------
    InvalidInputError
        Vectors of different texts, or of fewer than three.

    Examples
    --------
    >>> plain = np.float32([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> preserved_neighbours(plain, plain[:, ::-1]).value
    100.0
    """
    n = len(plain)
    if len(protected) != n or n < 3:
        raise InvalidInputError(
            f"Vectors of the same three texts or more are needed, got {n:,} and {len(protected):,}."
        )
    before, after = _nearest(plain), _nearest(protected)
    hits = 100.0 * (before == after)
    return Score(
        float(hits.mean()),
        percent_interval(hits, groups=units_of_vectors(plain), seed=seed),
        n,
        100.0 / (n - 1),
    )


def _nearest(vectors: Vectors) -> NDArray[np.int64]:
    """Return the index of the nearest other vector, by cosine, of each vector."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[Any] = vectors / np.maximum(lengths, 1e-12)
    alike = units @ units.T
    np.fill_diagonal(alike, -np.inf)
    return alike.argmax(1)
