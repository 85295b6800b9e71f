"""What each token does to a sentence's vector, learned once: which words a difference calls for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.attacks.inversion.reconstruct.coded import coded_in_halves, decoded, decoded_halves
from core.errors import InvalidInputError
from core.protocols import OnProgress, Vectors, no_progress

__all__ = ["Effects"]

_ROUNDS = 25

_OFTEN = 20
"""From how many sentences on a token's effect is known well enough to learn from."""


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
        alone: Vectors | None = None,
        ridge: float = 1.0,
        on_progress: OnProgress = no_progress,
    ) -> Self:
        """Fit by ridge regression of the (N, d) unit vectors on the tokens of N sentences.

        Solved by conjugate gradients, all columns side by side.

        Parameters
        ----------
        alone : float32 array of shape (V, d), optional
            The encoding of each token alone. Effects are then shrunk not towards 0 but towards
            what such an encoding says of them, by the linear map that is right for frequent
            tokens: of a rare one hardly more is known.
        """
        kept = [i for i, ids in enumerate(sentences) if len(ids)]
        counts = _counts([sentences[i] for i in kept], size)
        target = vectors[kept].astype(np.float32)
        target /= np.maximum(np.linalg.norm(target, axis=1, keepdims=True), 1e-12)
        centre = target.mean(0)
        left = (target - centre).astype(np.float32)
        share = 1.0 if alone is None else 0.5
        found = _solve(counts, left, ridge, lambda f, m: on_progress(share * f, m))
        if alone is not None:
            usual = _as_alone(found, alone, counts)
            left -= counts @ usual
            found = usual + _solve(counts, left, ridge, lambda f, m: on_progress(0.5 + f / 2, m))
        # as the file gives it back
        rounded = cls(found, centre.astype(np.float32)).arrays()
        return cls.from_arrays(rounded, *found.shape)

    def pull(self, missing: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return how far each token leads along each of m differences, shape (m, V)."""
        found: NDArray[np.float32] = missing @ self.vectors.T
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store: half a byte a number, scaled by token."""
        halves, scale = coded_in_halves(self.vectors)
        return {"halves": halves, "scale": scale, "centre": self.centre}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], size: int, d: int) -> Self:
        """Restore what `arrays` returned, or what it returned when a number took a byte.

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
                "The effects are not of the language model's tokens and the encoder's vectors. "
                "Restore the file or train the attack again."
            )
        if "codes" in arrays:
            return cls(decoded(kept, scale), centre)
        return cls(decoded_halves(kept, scale, d), centre)


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


def _as_alone(
    found: NDArray[np.float32], alone: Vectors, counts: sparse.csr_array
) -> NDArray[np.float32]:
    """Return (V, d) effects by the linear map of encodings alone that fits frequent tokens best."""
    n_texts = np.bincount(counts.indices, minlength=counts.shape[1])
    centred = alone - alone.mean(0)
    often = n_texts >= _OFTEN
    if often.sum() < 2 * alone.shape[1]:  # too few to learn a map from
        return np.zeros_like(found)
    weight = np.sqrt(np.minimum(n_texts[often], 1000.0))[:, None]
    x, y = weight * centred[often], weight * found[often]
    gram = x.T @ x
    gram += 1e-2 * np.trace(gram) / len(gram) * np.eye(len(gram))
    return (centred @ np.linalg.solve(gram, x.T @ y)).astype(np.float32)


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
