"""Linear heads on frozen vectors: the fast target, of which hundreds are solved together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.encoders import load_encoder
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, Vectors, no_progress
from leakscope.core.specs import setting, validate_settings
from leakscope.core.training.devices import fast_dtype, pick_device
from leakscope.core.vectors import is_sparse

_MOST_CELLS = 2**20
"""Rows × models × classes in memory at once, to fit a processor's cache."""

_CURVATURE = 0.2
"""The initial curvature of the softmax of a class (p(1 − p) at most), raised after a bad step."""


@dataclass(frozen=True, kw_only=True)
class Solving:
    """Settings of the solver: penalty, early stopping and tolerance.

    Parameters
    ----------
    c : float
        Inverse strength of the penalty: as scikit-learn's `C`.
    patience : int
        Steps without a better validation accuracy after which a model stops; 0 solves to the end.
    tolerance : float
        Relative gain of the objective below which a model counts as solved.
    """

    c: float = 10.0
    patience: int = 3
    most_steps: int = 200
    tolerance: float = 1e-2


@dataclass(frozen=True, eq=False)
class Heads:
    """The weights of several fitted regressions.

    Attributes
    ----------
    weights : ndarray of float32, shape (n_models, d, n_classes)
    biases : ndarray of float32, shape (n_models, n_classes)
    n_steps : int
        Passes over the features.
    """

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    n_steps: int = 0

    def probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return each model's class probabilities for feature rows, (n_models, n, n_classes)."""
        n_models, _, n_classes = self.weights.shape
        out = np.empty((n_models, len(features), n_classes), dtype=np.float32)
        for i in range(n_models):
            logits = torch.from_numpy(features @ self.weights[i] + self.biases[i])
            out[i] = torch.softmax(logits, 1).numpy()
        return out


def fit_heads(
    features: NDArray[np.float32],
    labels: NDArray[np.int64],
    n_classes: int,
    trained: NDArray[np.bool_],
    validated: NDArray[np.bool_],
    solving: Solving,
    report: Callable[[float], None] = lambda done: None,
) -> Heads:
    """Fit one multinomial logistic regression per model, all at once.

    f_m(W, b) = 1/n_m Σ_{i ∈ m} −log softmax(Wᵀx_i + b)_{y_i} + 1/(2 C n_m) ‖W‖², which is what
    scikit-learn's `LogisticRegression(C=C)` minimises. All models make a step together: the
    products with the features, which they share, are one matrix product. Features are turned to
    their principal axes, where the curvature h·s_j + 1/(C n_m) is nearly diagonal (s_j being the
    variance along axis j); steps are divided by it and accelerated (Nesterov), momentum is dropped
    where it leads uphill, and h is doubled where a plain step does.

    With `patience`, the weights of the step with the best validation accuracy are returned.

    Parameters
    ----------
    features : ndarray of float32, shape (n, d)
    trained, validated : ndarray of bool, shape (n_models, n)
    report : callable
        Called with the share of steps done.

    Raises
    ------
    InvalidInputError
        A model that is to stop early has no validation sample.
    """
    if solving.patience and not validated.any(1).all():
        raise InvalidInputError("A model has no text that could stop its training early.")
    used = np.flatnonzero((trained | validated).any(0))
    problem = _Problem.of(features[used], labels[used], n_classes, trained[:, used], solving.c)
    held = problem.tensor(validated[:, used].T.astype(np.float32))
    run = _Solver(problem, held, solving)
    while not run.is_over:
        run.step()
        report(run.n_steps / solving.most_steps)
    weights, biases = problem.to_original_axes(*run.chosen)
    return Heads(weights, biases, run.n_steps)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The optimisation problem: features in principal axes, and each model's training rows."""

    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    features: Tensor
    """Shape (n, d), in the number format of fast products."""
    variances: Tensor
    labels: Tensor
    weights: Tensor
    """Shape (n, n_models): 1/n_m where row i is of model m."""
    penalties: Tensor
    n_classes: int

    @classmethod
    def of(
        cls,
        features: NDArray[np.float32],
        labels: NDArray[np.int64],
        n_classes: int,
        trained: NDArray[np.bool_],
        c: float,
    ) -> _Problem:
        """Set up the fits of all models, with the features rotated to their principal axes."""
        device = pick_device()
        centre = features.mean(0, dtype=np.float64)
        centred = features - centre.astype(np.float32)
        variances, axes = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(features))
        turned = torch.from_numpy(centred @ axes.astype(np.float32)).to(device)
        share = trained.T / trained.sum(1)
        return cls(
            centre,
            axes,
            turned.to(fast_dtype(device)),
            torch.from_numpy(variances.clip(0).astype(np.float32)).to(device),
            torch.from_numpy(labels).to(device),
            torch.from_numpy(share.astype(np.float32)).to(device),
            torch.from_numpy((1 / (c * trained.sum(1))).astype(np.float32)).to(device),
            n_classes,
        )

    def tensor(self, array: NDArray[np.float32]) -> Tensor:
        """Convert an array to a tensor on the device of the features."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.features.device)

    @property
    def n_models(self) -> int:
        """The number of models."""
        return len(self.penalties)

    def evaluate(self, w: Tensor, b: Tensor, held: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return each model's objective, gradients (w, b) and number of right held-out rows.

        w has the shape (d, n_models, n_classes), b (n_models, n_classes).
        """
        n, (d, m, c) = len(self.labels), w.shape
        flat = w.reshape(d, m * c).to(self.features.dtype)
        loss, right = torch.zeros(m, device=w.device), torch.zeros(m, device=w.device)
        gw, gb = torch.zeros_like(w), torch.zeros_like(b)
        step = max(1, _MOST_CELLS // (m * c))
        is_held = bool(held.any())
        for start in range(0, n, step):
            rows = slice(start, start + step)
            x, y, share = self.features[rows], self.labels[rows], self.weights[rows]
            logits = (x @ flat).float().view(-1, m, c) + b
            place = y[:, None, None].expand(-1, m, 1)
            if is_held:
                right += ((logits.argmax(2) == y[:, None]) * held[rows]).sum(0)
            error = torch.log_softmax(logits, 2)
            loss -= (error.gather(2, place)[:, :, 0] * share).sum(0)
            error = error.exp_().scatter_add_(2, place, torch.full_like(logits[:, :, :1], -1.0))
            error *= share[:, :, None]
            gw += (x.T @ error.view(-1, m * c).to(x.dtype)).float().view(d, m, c)
            gb += error.sum(0)
        loss += self.penalties / 2 * (w * w).sum((0, 2))
        return loss, gw + self.penalties[None, :, None] * w, gb, right

    def to_original_axes(
        self, w: Tensor, b: Tensor
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Convert weights and biases to the original feature axes, as arrays."""
        turned = w.permute(1, 0, 2).cpu().numpy()
        weights = self.axes.astype(np.float32) @ turned
        biases = b.cpu().numpy() - self.centre @ weights
        return weights.astype(np.float32), biases.astype(np.float32)


class _Solver:
    """Accelerated gradient descent of all models, with restarts and early stopping.

    `at` is each model's position, `look` the extrapolated point where gradients are taken.
    """

    def __init__(self, problem: _Problem, held: Tensor, solving: Solving) -> None:
        self.problem, self.held, self.solving = problem, held, solving
        d, m, c = len(problem.variances), problem.n_models, problem.n_classes
        zeros = torch.zeros((d, m, c), device=held.device)
        none = torch.zeros((m, c), device=held.device)
        self.at, self.look = (zeros, none), (zeros.clone(), none.clone())
        self.best = (zeros, none, zeros, none)  # with its gradients
        self.kept = (zeros, none)
        self.lowest = torch.full((m,), torch.inf, device=held.device)
        self.highest = torch.full((m,), -1.0, device=held.device)
        self.h = torch.full((m,), _CURVATURE, device=held.device)
        self.t = torch.ones(m, device=held.device)
        self.is_plain = torch.zeros(m, dtype=torch.bool, device=held.device)
        self.waited = torch.zeros(m, device=held.device)
        self.is_solved = torch.zeros(m, dtype=torch.bool, device=held.device)
        self.n_steps = 0

    @property
    def is_over(self) -> bool:
        """Whether all models are solved or stopped, or the steps are used up."""
        done = self.is_solved
        if self.solving.patience:
            done = done | (self.waited >= self.solving.patience)
        return bool(done.all()) or self.n_steps >= self.solving.most_steps

    @property
    def chosen(self) -> tuple[Tensor, Tensor]:
        """The resulting weights and biases: best on validation, or of the lowest objective."""
        return self.kept if self.solving.patience else (self.best[0], self.best[1])

    def step(self) -> None:
        """Take one step of all models; a model whose objective rose goes back to its best point."""
        loss, gw, gb, right = self.problem.evaluate(*self.look, self.held)
        self._update_best(right)
        is_worse = loss > self.lowest
        gain = (self.lowest - loss) / loss.clamp(min=1e-12)
        self.is_solved = self.is_solved | (~is_worse & (gain < self.solving.tolerance))
        self.is_solved = self.is_solved | (self.h > 1e6)
        self.h = torch.where(is_worse & self.is_plain, 2 * self.h, self.h)
        self.lowest = torch.where(is_worse, self.lowest, loss)
        found = (*self.look, gw, gb)
        w, b, gw, gb = (
            _select_by_model(is_worse, *both) for both in zip(self.best, found, strict=True)
        )
        self.best = (w, b, gw, gb)
        curvature = self.h * self.problem.variances[:, None] + self.problem.penalties
        new = w - gw / curvature[:, :, None], b - gb / self.h[:, None]
        self._extrapolate(new, (gw, gb), is_worse)
        self.n_steps += 1

    def _update_best(self, right: Tensor) -> None:
        """Store, per model, the weights with the best validation accuracy; skipped at the start."""
        if not self.n_steps:
            return
        is_better = (right > self.highest) & (self.waited < self.solving.patience)
        self.highest = torch.where(is_better, right, self.highest)
        self.waited = torch.where(is_better, 0.0, self.waited + 1)
        self.kept = (
            _select_by_model(is_better, self.look[0], self.kept[0]),
            _select_by_model(is_better, self.look[1], self.kept[1]),
        )

    def _extrapolate(
        self, new: tuple[Tensor, Tensor], slope: tuple[Tensor, Tensor], is_worse: Tensor
    ) -> None:
        """Move to the new weights and extrapolate with momentum where that leads downhill."""
        uphill = sum(
            (g * (n - o)).sum((0, 2) if g.ndim == 3 else 1)
            for g, n, o in zip(slope, new, self.at, strict=True)
        )
        self.is_plain = is_worse | (uphill > 0)
        t = torch.where(self.is_plain, 1.0, self.t)
        self.t = (1 + torch.sqrt(1 + 4 * t * t)) / 2
        ahead = torch.where(self.is_plain, 0.0, (t - 1) / self.t)
        self.look = (
            new[0] + ahead[:, None] * (new[0] - self.at[0]),
            new[1] + ahead[:, None] * (new[1] - self.at[1]),
        )
        self.at = new


def _select_by_model(chosen: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Return the first tensor's entries for models where `chosen`, the second's elsewhere.

    Models are the second of three axes, or the first of two.
    """
    return torch.where(chosen[:, None], old, new)


def frozen_vectors(
    encoder: str, texts: Sequence[str], max_length: int, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Encode the first `max_length` words of each text by a named encoder, with a cache.

    Raises
    ------
    InvalidInputError
        They are sparse.
    """
    cut = [" ".join(text.split()[:max_length]) for text in texts]
    return check_dense(encoder, CachedEncoder(load_encoder(encoder)).encode(cut, on_progress))


def check_dense(encoder: str, vectors: Vectors) -> NDArray[np.float32]:
    """Return an encoder's vectors unchanged; raise InvalidInputError if they are sparse."""
    if is_sparse(vectors):
        raise InvalidInputError(
            f"{encoder} makes sparse vectors, but heads need dense ones. Choose another encoder."
        )
    return vectors


@dataclass
class LinearHeads:
    """Target classifiers: multinomial logistic regression on the vectors of a frozen encoder.

    Differs from Shejwalkar et al. (2021): they fine-tune all of BERT; here the encoder is frozen,
    so that members are in the head alone.
    """

    encoder: str = setting("minilm", "encoder of the vectors, by name")
    max_length: int = setting(128, "words read per text", low=1)
    c: float = setting(10.0, "inverse strength of the penalty, as scikit-learn's C", low=1e-6)
    patience: int = setting(
        3, "steps without better validation accuracy before stopping; 0: solve", low=0
    )
    most_steps: int = setting(200, "passes over the vectors at most", low=2)
    answers_: NDArray[np.float32] = field(init=False, repr=False, compare=False)
    heads_: Heads = field(init=False, repr=False, compare=False)

    def fit(
        self,
        batch: TrainingBatch,
        *,
        on_progress: OnProgress = no_progress,
        checkpoint_dir: str | None = None,
    ) -> Self:
        """Encode the texts (cached) and solve all models at once, in seconds."""
        del checkpoint_dir
        validate_settings(self)
        vectors = frozen_vectors(
            self.encoder, batch.texts, self.max_length, lambda done, m: on_progress(0.8 * done, m)
        )
        solving = Solving(c=self.c, patience=self.patience, most_steps=self.most_steps)
        self.heads_ = fit_heads(
            vectors,
            batch.labels,
            batch.n_classes,
            batch.trained,
            batch.validated,
            solving,
            lambda done: on_progress(0.8 + 0.2 * min(done, 1.0), "Solving the heads"),
        )
        self.answers_ = self.heads_.probabilities(vectors)
        return self
