"""Principal components: the linear map that keeps most of the variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.protocols import Vectors

__all__ = ["Principal", "principal_components"]


@dataclass(frozen=True, eq=False)
class Principal:
    """A fitted linear map: float32 `mean` (d,), `axes` (c, d) and the variance each axis keeps."""

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    kept: tuple[float, ...]

    def places(self, vectors: Vectors) -> NDArray[np.float32]:
        """Return the (n, c) float32 places of (n, d) vectors."""
        return np.ascontiguousarray((vectors - self.mean) @ self.axes.T, dtype=np.float32)


def principal_components(vectors: Vectors, n_components: int) -> Principal:
    """Fit the first axes of the covariance, each signed so that its largest entry is positive.

    By the eigenvectors of the (d, d) covariance, summed up in float64, which for many more vectors
    than dimensions is faster than a decomposition of the vectors. Vectors with fewer
    dimensions than the map get axes of zeros.
    """
    mean = vectors.mean(0, dtype=np.float64)
    centre = mean.astype(np.float32)
    covariance = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(vectors), 8192):
        block = vectors[start : start + 8192] - centre
        covariance += block.T @ block
    values, directions = np.linalg.eigh(covariance)
    axes = directions[:, ::-1][:, :n_components].T
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(1)])
    padded = np.zeros((n_components, vectors.shape[1]))
    padded[: len(axes)] = axes * signs[:, None]
    kept = np.maximum(values[::-1][:n_components], 0) / max(float(values.sum()), 1e-30)
    shares = tuple(float(k) for k in kept) + (0.0,) * (n_components - len(kept))
    return Principal(mean.astype(np.float32), padded.astype(np.float32), shares)
