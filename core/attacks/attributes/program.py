"""Many linear classifiers trained as one tensor program over shared frozen features.

Each classifier has its own labelled rows of the features, its own order of batches and its own
weights; a step of all of them is two batched products. Each ends with the weights that it would
have if trained alone. On sparse features, such as words, they are trained one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from leakscope.core.protocols import OnProgress, no_progress

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
"""Adam's usual constants (Kingma & Ba 2015)."""

_MOST_WEIGHTS = 2**21
"""The most weights trained at once: with Adam's moments they stay in the processor's cache."""


@dataclass(frozen=True)
class Recipe:
    """Training settings of a linear classifier; SR20, §6.3: Adam, 0.001, 30 epochs, batch 128."""

    rate: float = 1e-3
    epochs: int = 30
    batch_size: int = 128


@dataclass(frozen=True)
class Problem:
    """The training data of one classifier: labelled rows of shared features.

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
        """Return the number of training steps of this problem under a recipe."""
        return recipe.epochs * -(-len(self.rows) // recipe.batch_size)


@dataclass(frozen=True)
class Linear:
    """A fitted linear classifier: label log-odds up to a common constant.

    Attributes
    ----------
    weights : ndarray of float32, shape (d, n_labels)
    bias : ndarray of float32, shape (n_labels,)
    centre : ndarray of float32, shape (d,)
        Subtracted from each vector first.
    scale : float
        Factor applied after centring.
    columns : ndarray of int64 or None
        For sparse features, the columns that have weights; all others are ignored.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    centre: NDArray[np.float32]
    scale: float = 1.0
    columns: NDArray[np.int64] | None = None

    def scores(self, vectors: Any) -> NDArray[np.float32]:
        """Return the logits of each label for each vector, (n, n_labels)."""
        found: NDArray[np.float32]
        if self.columns is not None:
            found = self.scale * (vectors[:, self.columns] @ self.weights) + self.bias
        else:
            found = self.scale * ((vectors - self.centre) @ self.weights) + self.bias
        return found


def centre_and_scale(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return vectors' mean, and the factor that scales their mean entry variance to 1.

    Vectors of unit length have entries of about 1/√d, which 30 epochs of Adam at a rate of 0.001
    hardly move a classifier by.
    """
    centre = vectors.mean(0, dtype=np.float64).astype(np.float32)
    spread = float(np.sqrt(np.mean((vectors - centre) ** 2, dtype=np.float64)))
    return centre, 1.0 / max(spread, 1e-6)


def batch_schedule(
    problem: Problem, recipe: Recipe
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw the batches of a problem: the row positions of each training step and their weights.

    Returns
    -------
    places : ndarray of int64, shape (n_steps, batch_size)
        A permutation of all rows per epoch, cut into batches; the last batch is padded.
    weights : ndarray of float32, same shape
        1 / (rows of the batch), and 0 for padding.
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
    """Train a softmax classifier for each problem on shared dense features, many at once.

    Problems with equally many labels are trained together. Each starts from zero and ends with its
    last step; the longest come first, so that finished ones are left out of the products.

    Parameters
    ----------
    features : ndarray of float32, shape (n, d)
        Frozen vectors, which all problems share.
    """
    shared = torch.from_numpy(np.ascontiguousarray(features, np.float32)).to(device or "cpu")
    found: dict[int, Linear] = {}
    for together in _group_problems(problems, recipe, features.shape[1]):
        trained = _train_group(shared, [problems[i] for i in together], recipe)
        found.update(zip(together, trained, strict=True))
        on_progress(len(found) / len(problems), f"Trained {len(found)} of {len(problems)}")
    return [found[i] for i in range(len(problems))]


def _group_problems(problems: Sequence[Problem], recipe: Recipe, dimension: int) -> list[list[int]]:
    """Group problems (by index) that are trained at once: equal label counts, longest first."""
    by_size: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        by_size.setdefault(problem.n_labels, []).append(i)
    parts = []
    for n_labels, members in by_size.items():
        members.sort(key=lambda i: -problems[i].n_steps(recipe))
        n = max(1, _MOST_WEIGHTS // (dimension * n_labels))
        parts += [members[start : start + n] for start in range(0, len(members), n)]
    return parts


def _train_group(features: Tensor, problems: Sequence[Problem], recipe: Recipe) -> list[Linear]:
    """Train problems with equal label counts, sorted by number of steps, in one batched loop."""
    device, d, n_labels = features.device, features.shape[1], problems[0].n_labels
    scalings = [centre_and_scale(features[p.rows].cpu().numpy()) for p in problems]
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
    all_weights, all_bias = weights.cpu().numpy(), bias.cpu().numpy()
    return [
        Linear(all_weights[i], all_bias[i, 0], scalings[i][0], scalings[i][1])
        for i in range(len(problems))
    ]


class _Steps:
    """The training batches of several problems, on a device, indexed by step."""

    def __init__(self, problems: Sequence[Problem], recipe: Recipe, device: torch.device) -> None:
        n_steps = [p.n_steps(recipe) for p in problems]
        shape = (max(n_steps), len(problems), recipe.batch_size)
        rows, labels = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        counts = np.zeros(shape, np.float32)
        for i, problem in enumerate(problems):
            places, weights = batch_schedule(problem, recipe)
            rows[: len(places), i] = problem.rows[places]
            labels[: len(places), i] = problem.labels[places]
            counts[: len(places), i] = weights
        self.n_active = [sum(n > t for n in n_steps) for t in range(max(n_steps))]
        self._rows, self._labels, self._counts = (
            torch.from_numpy(a).to(device) for a in (rows, labels, counts)
        )

    def at(self, t: int) -> tuple[int, Tensor, Tensor, Tensor]:
        """Return the batch of step t: the number of unfinished problems, rows, labels, weights."""
        n = self.n_active[t]
        return n, self._rows[t, :n], self._labels[t, :n], self._counts[t, :n]


def train_sparse(features: Any, problem: Problem, recipe: Recipe) -> Linear:
    """Train the classifier of one problem on sparse features, by the steps of `train_many`.

    Differs from dense features: rows are not centred, which would make them dense; they are
    scaled so that their mean squared length is the number of columns that the labelled rows fill.
    Other columns have no weight, since no gradient ever reaches them.

    Parameters
    ----------
    features : csr_array of float32, shape (n, d)
    """
    known = sparse.csr_array(features[problem.rows])
    columns = np.unique(known.indices).astype(np.int64)
    if not len(columns):  # no text has a known word
        nothing = np.zeros((0, problem.n_labels), np.float32)
        return Linear(nothing, nothing.sum(0), np.zeros(0, np.float32), 1.0, columns)
    squared = float(known.multiply(known).sum()) / known.shape[0]
    scale = float(np.sqrt(len(columns) / max(squared, 1e-12)))
    known = sparse.csr_array(known[:, columns] * np.float32(scale))
    weights = torch.zeros(len(columns), problem.n_labels)
    bias = torch.zeros(problem.n_labels)
    moments = [torch.zeros_like(p) for p in (weights, weights, bias, bias)]
    at_weights, at_bias = weights.numpy(), bias.numpy()  # the same memory
    places, counts = batch_schedule(problem, recipe)
    for t in range(len(places)):
        n = int((counts[t] > 0).sum())
        rows = places[t, :n]
        x = known[rows]
        error = torch.from_numpy(x @ at_weights + at_bias).softmax(1)
        error[torch.arange(n), torch.from_numpy(problem.labels[rows])] -= 1
        error /= n
        gradient = torch.from_numpy(np.ascontiguousarray(x.T @ error.numpy()))
        adam_step(weights, gradient, moments[0], moments[1], t, recipe.rate)
        adam_step(bias, error.sum(0), moments[2], moments[3], t, recipe.rate)
    centre = np.zeros(len(columns), np.float32)
    return Linear(at_weights.copy(), at_bias.copy(), centre, scale, columns)


def adam_step(
    weights: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, t: int, rate: float
) -> None:
    """Update weights in place by step t (from 0) of Adam (Kingma & Ba 2015, Alg. 1)."""
    one, two = _BETAS
    mean.lerp_(gradient, 1 - one)
    square.mul_(two).addcmul_(gradient, gradient, value=1 - two)
    root = square.sqrt().div_((1 - two ** (t + 1)) ** 0.5).add_(_EPSILON)
    weights.addcdiv_(mean, root, value=-rate / (1 - one ** (t + 1)))
