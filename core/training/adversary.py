"""Training against an adversary: gradient reversal, and when a training has run away.

One loss trains both sides: main(Φ) + adversary(A(reverse(Φ(x), λ))). The adversary A learns to
read the vectors; what its loss says of the vectors reaches the encoder Φ turned round, λ times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.errors import DivergedError

__all__ = ["Adversary", "LabelAdversary", "StandardScale", "guard", "reverse"]


class Adversary(Protocol):
    """Learns to read something off vectors while these are trained to hide it."""

    def loss(self, vectors: Tensor, rows: NDArray[np.int64]) -> Tensor:
        """Return −log P_A of what the texts of `rows` hold, averaged over them."""
        ...

    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much of each text it reads, in per cent."""
        ...

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return what one answer to all these texts reaches at best, in per cent."""
        ...


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return vectors.view_as(vectors)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return -ctx.weight * gradient, None


def reverse(vectors: Tensor, weight: float) -> Tensor:
    """Return the vectors as they are; on the way back, their gradient is multiplied by −λ.

    Implements gradient reversal (Ganin & Lempitsky 2015, §3.1): R_λ(x) = x, dR_λ/dx = −λ I, so
    that one step of gradient descent is one of both players of Song & Raghunathan (2020), §7:
    min_Φ max_A λ log P_A(s|Φ(x_b)) − log P_Φ(x_b|x_a, X_neg).
    Differs from the paper: λ multiplies what reaches Φ alone. A itself learns at its full rate,
    whatever λ is, since one that hardly learns hides nothing.

    Examples
    --------
    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> (3 * reverse(x, 0.5)).sum().backward()
    >>> x.grad.tolist()
    [-1.5, -1.5]
    """
    reversed_: Tensor = _Reversal.apply(vectors, weight)
    return reversed_


def guard(
    optimizer: torch.optim.Optimizer, encoder: Iterable[nn.Parameter], *, clip: float, weight: float
) -> None:
    """Look at the encoder's gradient before every step: clip it, or stop a run that has diverged.

    The adversary's own gradient is not clipped with it.

    Parameters
    ----------
    optimizer : Optimizer
        Of the encoder and the adversary.
    encoder : iterable of Parameter
        What is trained to hide.
    clip : float
        Longest gradient; 0 for any.
    weight : float
        λ, for the message.

    Raises
    ------
    DivergedError
        In `optimizer.step`, before anything is changed: a gradient holds NaN or infinity.
    """
    known = [p for p in encoder if p.requires_grad]

    def look(*_: Any) -> None:
        norm = nn.utils.clip_grad_norm_(known, clip or float("inf"))
        if not torch.isfinite(norm):
            raise DivergedError(
                f"Training ran away at weight {weight:g}: the encoder's gradient holds NaN or "
                "infinity. It was stopped, and nothing was stored. Lower weight (λ) or the "
                "learning rate."
            )

    optimizer.register_step_pre_hook(look)


class StandardScale(nn.Module):
    """Centres each number of a batch and scales it to unit variance.

    Else an encoder could hide from its adversary by shrinking, from which any fresh attacker
    recovers. Statistics are those of the batch in training, running means of them afterwards.
    """

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dimension, affine=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the (n, d) vectors scaled; a batch of one by the running means."""
        self.norm.train(self.training and len(vectors) > 1)
        scaled: Tensor = self.norm(vectors)
        return scaled


class LabelAdversary(nn.Module):
    """Infers an attribute of a text from its vector: log P_A(s|Φ(x)) of SR20, §7.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        The number of each text's label.
    n_labels, dimension : int
        Labels, and numbers in a vector.
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
        """Return the cross-entropy of the labels of `rows`, averaged."""
        truth = self._labels[torch.from_numpy(rows)].to(vectors.device)
        return nn.functional.cross_entropy(self.layers(vectors), truth)

    @torch.inference_mode()
    def hits(self, vectors: Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 100 where the likeliest label is the true one, else 0."""
        self.eval()
        said = self.layers(vectors).argmax(1).cpu()
        found: NDArray[np.float64] = 100.0 * (said == self._labels[torch.from_numpy(rows)]).numpy()
        return found

    def chance(self, rows: NDArray[np.int64]) -> float:
        """Return the share of the most frequent label, in per cent."""
        counts = torch.bincount(self._labels[torch.from_numpy(rows)])
        return 100.0 * int(counts.max()) / len(rows)
