"""Membership scores of sentence pairs: the dot product, and a similarity learned by Eq. 10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.specs import setting


def pair_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the dot product Φ(x_a)·Φ(x_b) of each pair of sentence vectors.

    Implements Song & Raghunathan (2020), §5.2, δ being the dot product (§6.4). Differs from the
    paper: nothing.

    Parameters
    ----------
    first, second : ndarray of float32, shape (n, d)

    Examples
    --------
    >>> one = np.array([[1, 2], [0, 3]], dtype=np.float32)
    >>> pair_similarity(one, one[::-1]).tolist()
    [6.0, 6.0]
    """
    if first.shape != second.shape or first.ndim != 2:
        raise InvalidInputError(
            f"Pairs are two rows of vectors of one shape, got {first.shape} and {second.shape}."
        )
    return np.einsum("nd,nd->n", first, second, dtype=np.float64)


@dataclass
class PairSimilarity:
    """Scores a pair by the dot product of its two vectors; nothing is learned."""

    def fit(
        self, first: NDArray[np.float32], second: NDArray[np.float32], members: NDArray[np.bool_]
    ) -> Self:
        """Return self unchanged: this attack learns nothing."""
        return self

    def score(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the dot product δ of each pair of sentence vectors."""
        return pair_similarity(first, second)


def membership_loss(
    matrix: Tensor, offset: Tensor, first: Tensor, second: Tensor, members: Tensor
) -> Tensor:
    """Return the mean cross-entropy of a learned similarity on pairs labelled by membership.

    Implements Song & Raghunathan (2020), Eq. 10: L = −[y log δ' + (1 − y) log(1 − δ')],
    δ'(x_a, x_b) = δ(W_mᵀΦ(x_a), W_mᵀΦ(x_b)), δ being the dot product. Differs from the paper: a dot
    product is no probability, so that the logarithms are of σ(δ' + c), c being learned.

    Parameters
    ----------
    matrix : Tensor of float32, shape (d, k)
        W_m.
    offset : Tensor of float32, shape ()
        c.
    first, second : Tensor of float32, shape (n, d)
        Φ(x_a) and Φ(x_b).
    members : Tensor of float32, shape (n,)
        y: 1 for pairs that the encoder was trained on, else 0.
    """
    similarity = ((first @ matrix) * (second @ matrix)).sum(1)
    return F.binary_cross_entropy_with_logits(similarity + offset, members)


@dataclass
class LearnedSimilarity:
    """Scores a pair by the dot product after a projection learned from labelled pairs (Eq. 10).

    Differs from the paper: W_m is square and starts as the fixed similarity does, the vectors being
    divided by the root of the spread of δ over labelled pairs; the size of a batch is ours.

    Attributes
    ----------
    matrix_ : ndarray of float32, shape (d, d)
        W_m, the division included.
    offset_ : float
        The added constant, so that 0 separates members from others.
    """

    epochs: int = setting(10, "Passes over the labelled pairs", low=0, high=1000, paper="SR20")
    learning_rate: float = setting(1e-3, "Of Adam", low=1e-7, high=1.0, paper="SR20")
    batch_size: int = setting(64, "Labelled pairs per step", low=1)
    seed: int = setting(0, "Of the order of the pairs", low=0)

    def fit(
        self, first: NDArray[np.float32], second: NDArray[np.float32], members: NDArray[np.bool_]
    ) -> Self:
        """Learn the projection W_m and the offset from vectors of pairs labelled by membership.

        Raises
        ------
        InvalidInputError
            Other shapes, NaN, or all pairs of one kind.
        """
        fixed = Ranking(pair_similarity(first, second), members).scores
        scale = 1 / max(float(fixed.std()), 1e-12)
        matrix = torch.eye(first.shape[1], requires_grad=True)
        offset = torch.tensor(-float(fixed.mean()) * scale, requires_grad=True)
        one, two = (torch.from_numpy(side * np.float32(scale**0.5)) for side in (first, second))
        labels = torch.from_numpy(members.astype(np.float32))
        optimizer = torch.optim.Adam([matrix, offset], lr=self.learning_rate)
        for epoch in range(self.epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(len(members))
            for start in range(0, len(order), self.batch_size):
                rows = torch.from_numpy(order[start : start + self.batch_size])
                optimizer.zero_grad()
                loss = membership_loss(matrix, offset, one[rows], two[rows], labels[rows])
                loss.backward()
                optimizer.step()
        self.matrix_ = matrix.detach().numpy() * np.float32(scale**0.5)
        self.offset_ = float(offset.detach())
        return self

    def score(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the log-odds δ' + c that each pair of vectors was trained on."""
        if not hasattr(self, "matrix_"):
            raise NotFittedError("LearnedSimilarity is not fitted. Call fit with labelled pairs.")
        found = pair_similarity(first @ self.matrix_, second @ self.matrix_)
        scores: NDArray[np.float64] = found + self.offset_
        return scores
