"""What each token does to a sentence's vector, learned once: which words a difference calls for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.attacks.inversion.reconstruct.coded import coded, decoded
from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["Effects"]

_ROUNDS = 25


@dataclass(frozen=True)
class Effects:
    """Vectors b_w such that a sentence's vector is about Σ_w b_w / √n over its n tokens.

    Where a sentence that was encoded differs from the vector under attack, the effects say which
    tokens would lead from one to the other, all tokens at once and without a query.
    """

    vectors: NDArray[np.float32]
    """b, shape (V, d)."""
    centre: NDArray[np.float32]
    """What all sentences share, shape (d,)."""

    @classmethod
    def fit(
        cls,
        sentences: Sequence[NDArray[np.int32]],
        vectors: Vectors,
        size: int,
        *,
        ridge: float = 1.0,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Fit by ridge regression of the (N, d) unit vectors on the tokens of N sentences.

        Solved by conjugate gradients, all columns side by side.
        """
        kept = [i for i, ids in enumerate(sentences) if len(ids)]
        counts = _counts([sentences[i] for i in kept], size)
        target = vectors[kept] / np.maximum(
            np.linalg.norm(vectors[kept], axis=1, keepdims=True), 1e-12
        )
        centre = target.mean(0)
        found = _solve(counts, (target - centre).astype(np.float32), ridge, on_progress)
        return cls(decoded(*coded(found)), centre.astype(np.float32))  # as the file gives it back

    def pull(self, missing: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return how far each token leads along each of m differences, shape (m, V)."""
        found: NDArray[np.float32] = missing @ self.vectors.T
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store: a byte a number, scaled by token."""
        codes, scale = coded(self.vectors)
        return {"codes": codes, "scale": scale, "centre": self.centre}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `arrays` returned."""
        return cls(decoded(arrays["codes"], arrays["scale"]), arrays["centre"])


def _counts(sentences: Sequence[NDArray[np.int32]], size: int) -> sparse.csr_array:
    """Return the (N, V) counts of tokens over √n."""
    lengths = np.array([len(ids) for ids in sentences])
    values = np.repeat(1 / np.sqrt(lengths), lengths).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    table = sparse.csr_array(
        (values, np.concatenate(sentences), starts), shape=(len(sentences), size)
    )
    table.sum_duplicates()
    return table


def _solve(
    counts: sparse.csr_array, target: NDArray[np.float32], ridge: float, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Return (XᵀX + ρI)⁻¹XᵀY, with the diagonal as preconditioner."""
    turned = counts.T.tocsr()
    diagonal = (np.asarray(turned.multiply(turned).sum(1)).ravel() + ridge)[:, None]
    found = np.zeros((counts.shape[1], target.shape[1]), np.float32)
    left = turned @ target
    step = left / diagonal
    size = (left * step).sum(0)
    for i in range(_ROUNDS):
        on_progress(i / _ROUNDS, "Learning what each word does to a vector")
        image = turned @ (counts @ step) + ridge * step
        length = size / np.maximum((step * image).sum(0), 1e-20)
        found += length * step
        left = left - length * image
        ahead = left / diagonal
        grown = (left * ahead).sum(0)
        step = ahead + grown / np.maximum(size, 1e-20) * step
        size = grown
    return found.astype(np.float32)
