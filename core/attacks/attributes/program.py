"""Many linear classifiers trained as one tensor program over shared frozen features.

Each has its own labelled rows of the features, its own order of batches and its own weights; a
step of all of them is two batched products. What each ends with is what it would end with alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.protocols import OnProgress, no_progress

__all__ = ["Linear", "Problem", "Recipe", "adam_step", "batches_of", "scaling_of", "train_many"]

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
"""Of Adam (Kingma & Ba 2015), as usual."""

_MOST_WEIGHTS = 2**21
"""Weights that are trained at once: with Adam's moments they stay in the processor's cache."""


@dataclass(frozen=True)
class Recipe:
    """How each is trained; SR20, §6.3: Adam, 0.001, 30 epochs, batches of 128."""

    rate: float = 1e-3
    epochs: int = 30
    batch_size: int = 128


@dataclass(frozen=True)
class Problem:
    """What one classifier learns from.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Of the features.
    labels : ndarray of int64, shape (n,)
        From 0 to n_labels - 1.
    seed : int
        Of the order of its batches.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    n_labels: int
    seed: int = 0

    def n_steps(self, recipe: Recipe) -> int:
        """Return how many batches it is trained on."""
        return recipe.epochs * -(-len(self.rows) // recipe.batch_size)


@dataclass(frozen=True)
class Linear:
    """A fitted linear classifier: the log-odds of each label, up to what they have in common.

    Attributes
    ----------
    weights : ndarray of float32, shape (d, n_labels)
    bias : ndarray of float32, shape (n_labels,)
    centre : ndarray of float32, shape (d,)
        Taken from each vector first.
    scale : float
        What is left is multiplied by it.
    columns : ndarray of int64 or None
        Of sparse features, those that the weights are of; all others count nothing.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    centre: NDArray[np.float32]
    scale: float = 1.0
    columns: NDArray[np.int64] | None = None

    def scores(self, vectors: Any) -> NDArray[np.float32]:
        """Return the score of each label, (n, n_labels): log-probabilities before softmax."""
        found: NDArray[np.float32]
        if self.columns is not None:
            found = self.scale * (vectors[:, self.columns] @ self.weights) + self.bias
        else:
            found = self.scale * ((vectors - self.centre) @ self.weights) + self.bias
        return found


def scaling_of(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return the mean, and what makes the mean variance of an entry 1.

    Vectors of unit length have entries of about 1/√d, which 30 epochs of Adam at a rate of 0.001
    hardly move a classifier by.
    """
    centre = vectors.mean(0, dtype=np.float64).astype(np.float32)
    spread = float(np.sqrt(np.mean((vectors - centre) ** 2, dtype=np.float64)))
    return centre, 1.0 / max(spread, 1e-6)


def batches_of(problem: Problem, recipe: Recipe) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return which of a problem's rows each step takes, and what each counts.

    Returns
    -------
    places : ndarray of int64, shape (n_steps, batch_size)
        A permutation of all rows an epoch, cut into batches; the last one of an epoch is filled up.
    weights : ndarray of float32, same shape
        1 / (rows of the batch), and 0 of what fills up.
    """
    n, size = len(problem.rows), recipe.batch_size
    n_batches = -(-n // size)
    places = np.zeros((recipe.epochs, n_batches * size), np.int64)
    for epoch in range(recipe.epochs):
        places[epoch, :n] = np.random.default_rng([problem.seed, epoch]).permutation(n)
    counts = np.full(n_batches, size)
    counts[-1] = n - (n_batches - 1) * size
    weights = np.where(np.arange(size) < counts[:, None], 1.0 / counts[:, None], 0.0)
    return places.reshape(-1, size), np.tile(weights.astype(np.float32), (recipe.epochs, 1))


def train_many(
    features: NDArray[np.float32],
    problems: Sequence[Problem],
    recipe: Recipe,
    *,
    device: torch.device | None = None,
    on_progress: OnProgress = no_progress,
) -> list[Linear]:
    """Return the classifier of each problem, trained on the cross-entropy of its labelled rows.

    Those of equally many labels are trained together. Each starts from zero and ends with its last
    step; the longest stand first, so that whoever has ended is left out of the products.

    Parameters
    ----------
    features : ndarray of float32, shape (n, d)
        Frozen vectors, which all problems share.
    """
    shared = torch.from_numpy(np.ascontiguousarray(features, np.float32)).to(device or "cpu")
    found: dict[int, Linear] = {}
    for together in _together(problems, recipe, features.shape[1]):
        trained = _train(shared, [problems[i] for i in together], recipe)
        found.update(zip(together, trained, strict=True))
        on_progress(len(found) / len(problems), f"{len(found)} of {len(problems)} are trained")
    return [found[i] for i in range(len(problems))]


def _together(problems: Sequence[Problem], recipe: Recipe, dimension: int) -> list[list[int]]:
    """Return which problems are trained at once, the longest first."""
    by_size: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        by_size.setdefault(problem.n_labels, []).append(i)
    parts = []
    for n_labels, members in by_size.items():
        members.sort(key=lambda i: -problems[i].n_steps(recipe))
        n = max(1, _MOST_WEIGHTS // (dimension * n_labels))
        parts += [members[start : start + n] for start in range(0, len(members), n)]
    return parts


def _train(features: Tensor, problems: Sequence[Problem], recipe: Recipe) -> list[Linear]:
    """Train problems of equally many labels, sorted by their number of steps."""
    device, d, n_labels = features.device, features.shape[1], problems[0].n_labels
    scalings = [scaling_of(features[p.rows].cpu().numpy()) for p in problems]
    centre = torch.tensor(np.stack([c for c, _ in scalings]), device=device)[:, None]
    scale = torch.tensor([s for _, s in scalings], device=device)[:, None, None]
    steps = _Steps(problems, recipe, device)
    weights = torch.zeros(len(problems), d, n_labels, device=device)
    bias = torch.zeros(len(problems), 1, n_labels, device=device)
    moments = [torch.zeros_like(p) for p in (weights, weights, bias, bias)]
    for t in range(len(steps.n_active)):
        n, rows, labels, counts = steps.at(t)
        x = features[rows.reshape(-1)].view(n, -1, d).sub_(centre[:n]).mul_(scale[:n])
        error = torch.baddbmm(bias[:n], x, weights[:n]).softmax(2)
        error.scatter_add_(2, labels[..., None], torch.full_like(counts, -1.0)[..., None])
        error *= counts[..., None]
        gradients = torch.bmm(x.transpose(1, 2), error), error.sum(1, keepdim=True)
        adam_step(weights[:n], gradients[0], moments[0][:n], moments[1][:n], t, recipe.rate)
        adam_step(bias[:n], gradients[1], moments[2][:n], moments[3][:n], t, recipe.rate)
    told = weights.cpu().numpy(), bias.cpu().numpy()
    return [
        Linear(told[0][i], told[1][i, 0], scalings[i][0], scalings[i][1])
        for i in range(len(problems))
    ]


class _Steps:
    """The batches of several problems, step by step."""

    def __init__(self, problems: Sequence[Problem], recipe: Recipe, device: torch.device) -> None:
        n_steps = [p.n_steps(recipe) for p in problems]
        shape = (max(n_steps), len(problems), recipe.batch_size)
        rows, labels = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        counts = np.zeros(shape, np.float32)
        for i, problem in enumerate(problems):
            places, weights = batches_of(problem, recipe)
            rows[: len(places), i] = problem.rows[places]
            labels[: len(places), i] = problem.labels[places]
            counts[: len(places), i] = weights
        self.n_active = [sum(n > t for n in n_steps) for t in range(max(n_steps))]
        self._rows, self._labels, self._counts = (
            torch.from_numpy(a).to(device) for a in (rows, labels, counts)
        )

    def at(self, t: int) -> tuple[int, Tensor, Tensor, Tensor]:
        """Return how many problems still go on, and their rows, labels and counts."""
        n = self.n_active[t]
        return n, self._rows[t, :n], self._labels[t, :n], self._counts[t, :n]


def adam_step(
    weights: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, t: int, rate: float
) -> None:
    """Take step t, counted from 0, of Adam (Kingma & Ba 2015, Alg. 1), in place."""
    one, two = _BETAS
    mean.lerp_(gradient, 1 - one)
    square.mul_(two).addcmul_(gradient, gradient, value=1 - two)
    root = square.sqrt().div_((1 - two ** (t + 1)) ** 0.5).add_(_EPSILON)
    weights.addcdiv_(mean, root, value=-rate / (1 - one ** (t + 1)))
