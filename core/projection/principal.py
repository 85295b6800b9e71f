"""Principal component analysis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.protocols import Vectors


@dataclass(frozen=True, eq=False)
class Principal:
    """A fitted PCA: float32 `mean` (d,), `axes` (c, d), and the variance share of each axis."""

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    kept: tuple[float, ...]

    def project(self, vectors: Vectors) -> NDArray[np.float32]:
        """Project (n, d) vectors onto the axes; return (n, c) float32 coordinates."""
        return np.ascontiguousarray((vectors - self.mean) @ self.axes.T, dtype=np.float32)


def principal_components(vectors: Vectors, n_components: int) -> Principal:
    """Fit a PCA of `n_components` axes to vectors, with deterministic signs.

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
