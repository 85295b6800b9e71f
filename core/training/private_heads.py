"""A small classifier on frozen vectors, trained with differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.ranges import Strength
from leakscope.core.specs import setting, settings_of, validate_settings
from leakscope.core.storage.artifacts import digest_of
from leakscope.core.training.accounting import DELTA, MOST_EPSILON, Guarantee, Privacy
from leakscope.core.training.noise_source import seed_digest, seed_for
from leakscope.core.training.private import DPSettings, PoissonLoop, poisson_rate, train_private

FEWEST = 20
"""Minimum number of training texts."""

_Vectors = NDArray[np.float32]


_EPSILON = Strength("ε of one text", 8.0, (0.5, 1.0, 4.0, 8.0), "ε {:g}")


@dataclass
class HeadSettings:
    """Training settings of a private classifier head, the same for every ε."""

    epsilon: float = setting(
        8.0,
        "ε of one text; 0 trains without clipping and noise",
        low=0,
        high=MOST_EPSILON,
        strength=_EPSILON,
    )
    delta: float = setting(DELTA, "δ, the probability that ε fails", low=1e-12, high=0.1)
    hidden: int = setting(0, "hidden units; 0 for none", low=0, high=4096)
    batch_size: int = setting(2048, "expected texts per step; more make up for noise", low=1)
    steps: int = setting(200, "approximate number of noisy steps", low=1, high=1_000_000)
    learning_rate: float = setting(0.01, "learning rate of Adam", low=1e-7, high=1e6)
    clip_norm: float = setting(
        1.0, "norm to which the gradient of a text is clipped", low=1e-6, high=1e6
    )

    @property
    def has_no_guarantee(self) -> bool:
        """Whether training adds no noise, so that no text is protected."""
        return self.epsilon == 0


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """A trained head's weights and the privacy they cost.

    Attributes
    ----------
    weights : dict of float32 arrays
        By their names in torch.
    privacy : Privacy or None
        None if it was trained without a guarantee.
    """

    weights: dict[str, NDArray[np.float32]]
    privacy: Privacy | None

    @property
    def dimension(self) -> int:
        """The dimension of the vectors that the head takes."""
        first = self.weights.get("first.weight", self.weights["last.weight"])
        return int(first.shape[1])

    def check(self, n_classes: int) -> TrainedHead:
        """Return the head itself; raise InvalidInputError if its weights' shapes do not fit.

        Raises
        ------
        InvalidInputError
            The shapes do not fit each other or the classes.
        """
        shapes = {name: value.shape for name, value in self.weights.items()}
        inner = shapes.get("first.bias", shapes.get("last.weight", ())[-1:])
        width = shapes.get("first.weight", shapes.get("last.weight", ()))[-1:]
        wanted = {"last.weight": (n_classes, *inner), "last.bias": (n_classes,)}
        if "first.bias" in shapes:
            wanted |= {"first.weight": (*inner, *width), "first.bias": inner}
        is_real = all(value.dtype.kind == "f" for value in self.weights.values())
        if shapes != wanted or len(inner) != 1 or not (n_classes and inner[0] and is_real):
            raise InvalidInputError(
                f"The weights have the shapes {shapes}, which do not fit a head for {n_classes} "
                "classes. Restore the file or train again."
            )
        return self

    def probabilities(self, vectors: _Vectors) -> NDArray[np.float32]:
        """Compute the (n, n_classes) class probabilities of (n, d) vectors."""
        n_classes, _ = self.weights["last.weight"].shape
        hidden = len(self.weights["first.bias"]) if "first.bias" in self.weights else 0
        network = _Head(vectors.shape[1], n_classes, hidden, 0)
        network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in self.weights.items()})
        with torch.inference_mode():
            logits = network(torch.from_numpy(standardise(vectors)))
            found: NDArray[np.float32] = torch.softmax(logits, 1).numpy()
        return found


class _Head(nn.Module):
    """Logistic regression, or a two-layer tanh network."""

    def __init__(self, dimension: int, n_classes: int, hidden: int, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if hidden:
                self.first = nn.Linear(dimension, hidden)
            self.last = nn.Linear(hidden or dimension, n_classes)
        if not hidden:
            nn.init.zeros_(self.last.weight)
            nn.init.zeros_(self.last.bias)
        self.hidden = hidden

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the (n, n_classes) class logits of (n, d) vectors."""
        inner = torch.tanh(self.first(vectors)) if self.hidden else vectors
        logits: Tensor = self.last(inner)
        return logits


def standardise(vectors: _Vectors) -> _Vectors:
    """Standardise each vector to mean 0 and variance 1 over its own components.

    Nothing is learned from other texts, which would cost ε as well.

    Examples
    --------
    >>> standardise(np.array([[1, 3], [5, 5]], np.float32)).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred = vectors - vectors.mean(1, keepdims=True)
    spread = np.maximum(centred.std(1, keepdims=True), 1e-12)
    found: _Vectors = (centred / spread).astype(np.float32)
    return found


def fit_head(
    vectors: _Vectors,
    labels: NDArray[np.int64],
    n_classes: int,
    settings: HeadSettings,
    seed: int,
    *,
    checkpoint_dir: Path | None = None,
    on_progress: OnProgress = no_progress,
) -> TrainedHead:
    """Train a classifier head on labelled vectors by DP-SGD; return weights and privacy.

    Parameters
    ----------
    seed : int
        At least 0, of any size: initial weights, batches and noise each depend on all of it.

    Raises
    ------
    InvalidInputError
        Settings out of range, arrays that do not fit together, fewer than 20 texts, or a guarantee
        that cannot be satisfied.
    DivergedError
        The training diverged; nothing is stored.
    MissingDependencyError
        opacus is not installed.
    """
    validate_settings(settings)
    check_data(vectors, labels, n_classes)
    n = len(labels)
    promise = None
    if settings.epsilon:
        promise = Guarantee(epsilon=settings.epsilon, delta=settings.delta, n_expected=n)
        promise.check()
    x, y = torch.from_numpy(standardise(vectors)), torch.from_numpy(labels)
    network = _Head(vectors.shape[1], n_classes, settings.hidden, seed_for(seed, "weights"))

    def losses_of(wrapped: nn.Module, rows: NDArray[np.int64]) -> Tensor:
        """Return the cross-entropy of each sample in a batch of rows."""
        return F.cross_entropy(wrapped(x[rows]), y[rows], reduction="none")

    loop = _loop(settings, n, seed, digest_of({"x": vectors, "y": labels}, n_classes))
    loop.checkpoint_dir = checkpoint_dir
    noising = DPSettings(
        promise=promise,
        learning_rate=settings.learning_rate,
        clip_norm=settings.clip_norm,
        clipping="ghost",
    )
    privacy = train_private(network, losses_of, noising, loop, on_progress=on_progress)
    weights = {name: value.numpy().copy() for name, value in network.state_dict().items()}
    return TrainedHead(weights, privacy)


def _loop(settings: HeadSettings, n: int, seed: int, data: str) -> PoissonLoop:
    """Build the Poisson training loop of a head from its settings."""
    rate = poisson_rate(settings.batch_size, n)
    told = {name: getattr(settings, name) for name in settings_of(HeadSettings)}
    epochs = max(1, round(settings.steps * rate))
    loop = PoissonLoop(
        n=n,
        epochs=epochs,
        batch_size=settings.batch_size,
        seed=seed_for(seed, "process"),
        secret=seed,
        rate=rate,
        identity={**told, "seed": seed_digest(seed), "data": data},
        patience=epochs,
        keep_best=False,
        is_half=False,
        unit="texts",
        say_score=lambda _: f"ε = {settings.epsilon:g}" if settings.epsilon else "no ε",
    )
    return loop


def check_data(vectors: Any, labels: Any, n_classes: int) -> None:
    """Raise InvalidInputError if a head cannot be trained on the vectors and labels."""
    if vectors.ndim != 2 or vectors.dtype != np.float32 or labels.shape != (len(vectors),):
        raise InvalidInputError(
            "A head needs float32 vectors, one per row, and a class for each; got the shapes "
            f"{vectors.shape} and {labels.shape}."
        )
    if len(labels) < FEWEST:
        raise InvalidInputError(
            f"Private training needs at least {FEWEST} texts, got {len(labels)}. Provide more: "
            "with more texts, less noise is needed to hide each."
        )
    if n_classes < 2 or labels.min() < 0 or labels.max() >= n_classes:
        raise InvalidInputError(
            f"The classes must be numbers from 0 to {n_classes - 1}, with at least two classes."
        )
    if not np.isfinite(vectors).all():
        raise InvalidInputError("The vectors contain NaN or infinity. Remove those texts.")
