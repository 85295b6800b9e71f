"""Adversarial training: gradient reversal, label adversary and divergence check.

One loss trains both sides: main(Φ) + adversary(A(reverse(Φ(x), λ))). The adversary A learns to
invert the vectors. Its gradient reaches the encoder Φ with the opposite sign, times λ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from leakscope.core.errors import DivergedError


class Adversary(Protocol):
    """Protocol of a network that infers something from vectors that are trained to hide it."""

    def loss(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return the adversary's mean negative log-likelihood for the texts of `rows`."""
        ...

    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the adversary's score on each text of `rows` from its vector, in per cent."""
        ...

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return the best score, in per cent, of one constant answer for all texts of `rows`."""
        ...


class _Reversal(torch.autograd.Function):
    """Autograd function: identity forward, gradient times −weight backward."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: float) -> Tensor:
        """Return the vectors unchanged; store the weight for `backward`."""
        ctx.weight = weight
        return vectors.view_as(vectors)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient times −weight for the vectors, and None for the weight."""
        return -ctx.weight * gradient, None


def reverse(vectors: Tensor, weight: float) -> Tensor:
    """Return the vectors unchanged; multiply their gradient by −λ (gradient reversal).

    Implements gradient reversal (Ganin & Lempitsky 2015, §3.1): R_λ(x) = x, dR_λ/dx = −λ I, so
    that one step of gradient descent is a step of both players of Song & Raghunathan (2020), §7:
    min_Φ max_A λ log P_A(s|Φ(x_b)) − log P_Φ(x_b|x_a, X_neg).
    Differs from the paper: λ multiplies only the gradient that reaches Φ. A itself learns at its
    full rate whatever λ is, since an adversary that hardly learns would hide nothing.

    Examples
    --------
    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> (3 * reverse(x, 0.5)).sum().backward()
    >>> x.grad.tolist()
    [-1.5, -1.5]
    """
    reversed_: Tensor = _Reversal.apply(vectors, weight)
    return reversed_


def add_gradient_check(
    optimizer: torch.optim.Optimizer, encoder: Iterable[nn.Parameter], *, clip: float, weight: float
) -> None:
    """Make the optimiser's step clip the encoder's gradient, or raise DivergedError if not finite.

    The adversary's own gradient is not clipped with it.

    Parameters
    ----------
    optimizer : Optimizer
        Optimiser of the encoder and the adversary.
    encoder : iterable of Parameter
        The parameters that are trained to hide.
    clip : float
        Maximum gradient norm; 0 for no limit.
    weight : float
        λ, for the message.

    Raises
    ------
    DivergedError
        In `optimizer.step`, before anything changes: a gradient contains NaN or infinity.
    """
    known = [p for p in encoder if p.requires_grad]

    def look(*_: Any) -> None:
        """Clip the encoder's gradient, or raise DivergedError."""
        norm = nn.utils.clip_grad_norm_(known, clip or float("inf"))
        if not torch.isfinite(norm):
            raise DivergedError(
                f"Training diverged at weight {weight:g}: the encoder's gradient contains NaN or "
                "infinity. It was stopped, and nothing was stored. Lower weight (λ) or the "
                "learning rate."
            )

    optimizer.register_step_pre_hook(look)


class StandardScale(nn.Module):
    """Batch-normalisation without affine parameters: centres and scales each dimension.

    Without it, an encoder could hide from its adversary by shrinking its vectors, which any fresh
    attacker can undo. Statistics are those of the batch in training, and running means afterwards.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dimension, affine=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """Standardise each dimension of (n, d) vectors; a batch of one uses running statistics."""
        self.norm.train(self.training and len(vectors) > 1)
        scaled: Tensor = self.norm(vectors)
        return scaled


class LabelAdversary(nn.Module):
    """A classifier that infers a text's attribute from its vector: log P_A(s|Φ(x)) in SR20, §7.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        The index of each text's label.
    n_labels, dimension : int
        The number of labels, and the dimension of the vectors.
    hidden : int
        Units of a hidden layer; 0 for a linear adversary.
    """

    def __init__(
        self, labels: NDArray[np.int64], n_labels: int, dimension: int, *, hidden: int
    ) -> None:
        super().__init__()
        self._labels = torch.from_numpy(labels)
        layers: list[nn.Module] = [StandardScale(dimension)]
        if hidden:
            layers += [nn.Linear(dimension, hidden), nn.ReLU(), nn.Linear(hidden, n_labels)]
        else:
            layers.append(nn.Linear(dimension, n_labels))
        self.layers = nn.Sequential(*layers)

    def loss(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return the mean cross-entropy of the labels predicted for the texts of `rows`."""
        truth = self._labels[torch.from_numpy(rows)].to(vectors.device)
        return nn.functional.cross_entropy(self.layers(vectors), truth)

    @torch.inference_mode()
    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 100 for each text whose label is predicted correctly, else 0."""
        self.eval()
        said = self.layers(vectors).argmax(1).cpu()
        found: NDArray[np.float64] = 100.0 * (said == self._labels[torch.from_numpy(rows)]).numpy()
        return found

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return the share of the most frequent label among the texts of `rows`, in per cent."""
        counts = torch.bincount(self._labels[torch.from_numpy(rows)])
        return 100.0 * int(counts.max()) / len(rows)
