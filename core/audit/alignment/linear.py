"""A linear map from foreign vectors into a known encoder's space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import Vectors
from leakscope.core.vectors import unit

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearAlignment:
    """The map x ↦ unit((x − centre) W + mean) from foreign vectors to a known space.

    Attributes
    ----------
    weights : ndarray of float64, shape (d', d)
        Of unit vectors.
    centre : ndarray of float64, shape (d',)
    mean : ndarray of float64, shape (d,)
    method : str
        What fitted it.
    """

    weights: Floats
    centre: Floats
    mean: Floats
    method: str

    def apply(self, vectors: Vectors) -> Vectors:
        """Map foreign vectors, shape (n, d'), to unit vectors in the known space, shape (n, d).

        Raises
        ------
        InvalidInputError
            The vectors have another width.
        """
        width = len(self.centre)
        if vectors.ndim != 2 or vectors.shape[1] != width:
            raise InvalidInputError(
                f"vectors must have shape (n, {width}), as those that the map was fitted on, "
                f"got {vectors.shape}. Fit another map for them."
            )
        rows = unit(vectors.astype(np.float64))
        mapped: Vectors = unit((rows - self.centre) @ self.weights + self.mean).astype(np.float32)
        return mapped


def orthogonal_factor(matrix: Floats) -> Floats:
    """Return the orthogonal matrix R that maximises tr(Rᵀ M), of the shape of M.

    Schönemann (1966): U Vᵀ of the singular value decomposition U S Vᵀ of M. Where M has a lower
    rank, U and V end at that rank, and R is a partial isometry: what M does not show maps to 0.

    Examples
    --------
    >>> orthogonal_factor(np.array([[0.0, 3.0], [-2.0, 0.0]])).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    rank = int((s > s[0] * max(matrix.shape) * np.finfo(np.float64).eps).sum()) if s[0] > 0 else 0
    found: Floats = u[:, :rank] @ vt[:rank]
    return found
