"""The effect of each token on a sentence's vector, learned by ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from leakscope.core.attacks.inversion.reconstruct.quantization import (
    dequantize,
    dequantize_4bit,
    quantize_4bit,
)
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress

_ROUNDS = 25

_OFTEN = 20
"""The number of sentences from which a token's effect is reliable enough to learn from."""


@dataclass(frozen=True)
class Effects:
    """Token effects: vectors b_w such that a sentence's vector is about Σ_w b_w / √n.

    From the difference between an encoded sentence and the vector under attack they predict which
    tokens would reduce it, for all tokens at once and without a query.
    """

    vectors: NDArray[np.float32]
    """b, shape (V, d)."""
    centre: NDArray[np.float32]
    """The mean sentence vector, shape (d,)."""

    @classmethod
    def fit(
        cls,
        sentences: Sequence[NDArray[np.int32]],
        vectors: Vectors,
        size: int,
        *,
        alone: Vectors | None = None,
        ridge: float = 1.0,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Fit by ridge regression of N unit vectors (N, d) on the sentences' token counts.

        Solved by conjugate gradients, all columns side by side.

        Parameters
        ----------
        alone : float32 array of shape (V, d), optional
            The encoding of each token alone. Effects are then shrunk towards a linear function of
            these instead of 0. The function is fitted on frequent tokens; for a rare token hardly
            more is known.
        """
        kept = [i for i, ids in enumerate(sentences) if len(ids)]
        counts = _scaled_counts([sentences[i] for i in kept], size)
        target = vectors[kept].astype(np.float32)
        target /= np.maximum(np.linalg.norm(target, axis=1, keepdims=True), 1e-12)
        centre = target.mean(0)
        left = (target - centre).astype(np.float32)
        share = 1.0 if alone is None else 0.5
        found = _solve_ridge(counts, left, ridge, lambda f, m: on_progress(share * f, m))
        if alone is not None:
            usual = _from_single_tokens(found, alone, counts)
            left -= counts @ usual
            found = usual + _solve_ridge(
                counts, left, ridge, lambda f, m: on_progress(0.5 + f / 2, m)
            )
        # as the file restores it
        rounded = cls(found, centre.astype(np.float32)).arrays()
        return cls.from_arrays(rounded, *found.shape)

    def pull(self, missing: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the dot products of m difference vectors with each token's effect, (m, V)."""
        found: NDArray[np.float32] = missing @ self.vectors.T
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store, by name: effects in 4 bits with a scale for each token."""
        halves, scale = quantize_4bit(self.vectors)
        return {"halves": halves, "scale": scale, "centre": self.centre}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], size: int, d: int) -> Self:
        """Build the effects from what `arrays` returned, or from the former 8-bit format.

        Raises
        ------
        InvalidInputError
            They are not of `size` tokens and vectors of d numbers.
        """
        centre, scale = arrays["centre"], arrays["scale"]
        kept = arrays["codes"] if "codes" in arrays else arrays["halves"]
        wanted = (size, d if "codes" in arrays else -(-d // 2))
        if kept.shape != wanted or (len(scale), len(centre)) != (size, d):
            raise InvalidInputError(
                "The effects do not match the language model's tokens and the encoder's vectors. "
                "Restore the file or train the attack again."
            )
        if "codes" in arrays:
            return cls(dequantize(kept, scale), centre)
        return cls(dequantize_4bit(kept, scale, d), centre)


def _scaled_counts(sentences: Sequence[NDArray[np.int32]], size: int) -> sparse.csr_array:
    """Return the token counts of sentences of n tokens, divided by √n: sparse (N, V)."""
    lengths = np.array([len(ids) for ids in sentences])
    values = np.repeat(1 / np.sqrt(lengths), lengths).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    table = sparse.csr_array(
        (values, np.concatenate(sentences), starts), shape=(len(sentences), size)
    )
    table.sum_duplicates()
    return table


def _from_single_tokens(
    found: NDArray[np.float32], alone: Vectors, counts: sparse.csr_array
) -> NDArray[np.float32]:
    """Fit a map on frequent tokens' effects; predict all (V, d) from single-token encodings."""
    n_texts = np.bincount(counts.indices, minlength=counts.shape[1])
    centred = alone - alone.mean(0)
    often = n_texts >= _OFTEN
    if often.sum() < 2 * alone.shape[1]:  # too few to fit a map
        return np.zeros_like(found)
    weight = np.sqrt(np.minimum(n_texts[often], 1000.0))[:, None]
    x, y = weight * centred[often], weight * found[often]
    gram = x.T @ x
    gram += 1e-2 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return (centred @ np.linalg.solve(gram, x.T @ y)).astype(np.float32)


def _solve_ridge(
    counts: sparse.csr_array, target: NDArray[np.float32], ridge: float, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Solve ridge regression (XᵀX + ρI)⁻¹XᵀY by preconditioned conjugate gradients."""
    turned = counts.T.tocsr()
    diagonal = (np.asarray(turned.multiply(turned).sum(1)).ravel() + ridge)[:, None]
    found = np.zeros((counts.shape[1], target.shape[1]), np.float32)
    left = turned @ target
    step = left / diagonal
    size = (left * step).sum(0)
    for i in range(_ROUNDS):
        on_progress(i / _ROUNDS, "Learning the effect of each word on a vector")
        image = turned @ (counts @ step) + ridge * step
        length = size / np.maximum((step * image).sum(0), 1e-20)
        found += length * step
        left = left - length * image
        ahead = left / diagonal
        grown = (left * ahead).sum(0)
        step = ahead + grown / np.maximum(size, 1e-20) * step
        size = grown
    return found.astype(np.float32)
