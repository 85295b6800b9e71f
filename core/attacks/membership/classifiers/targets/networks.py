"""Networks of one kind trained side by side, each on its part of the same tokens.

Each is stopped early by itself. One that was trained is kept with its answers, and one that was
stopped or killed goes on from its checkpoint.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from core.attacks.membership.classifiers.targets.lesson import Lesson
from core.protocols import OnProgress
from core.store import save_artifact
from core.training.by_length import ByLength
from core.training.checkpoint import read_kept
from core.training.devices import pick_device
from core.training.loop import train

__all__ = ["Recipe", "Trainees", "train_side_by_side"]

_ANSWER_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How each network is trained.

    Parameters
    ----------
    identity : dict
        The settings; a checkpoint of others is refused.
    side_by_side : bool
        Whether several are trained at the same time, on a processor each.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int
    identity: dict[str, Any]
    clip_norm: float = 1.0
    side_by_side: bool = True


@dataclass(frozen=True, eq=False)
class Trainees:
    """What is trained: a network for each model, all over the same texts.

    Attributes
    ----------
    make : callable
        Returns the network of a model, its first weights drawn by the number.
    logits : callable
        Returns (batch, n_classes) logits of a network for rows of the lesson.
    lengths : ndarray of int64, shape (n,)
        Of the texts, in tokens.
    """

    lesson: Lesson
    make: Callable[[int], nn.Module]
    logits: Callable[[nn.Module, NDArray[np.int64]], Tensor]
    lengths: NDArray[np.int64]


def train_side_by_side(
    trainees: Trainees, recipe: Recipe, folder: Path | None, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Return the (n_models, n, n_classes) probabilities of all models for all texts.

    Where several are trained at the same time, each computes on one processor: a step of a small
    network is too little to be shared out, but networks are not.

    Raises
    ------
    ArtifactError
        The folder holds the checkpoint of another run.
    StoppedError
        Raised by `on_progress`; what was trained is kept.
    """
    n_models = trainees.lesson.n_models
    n_threads = min(torch.get_num_threads(), n_models)
    shares = _Shares(n_models, on_progress)

    def one(model: int) -> NDArray[np.float32]:
        place = None if folder is None else folder / f"model-{model}"
        return _Trained(trainees, recipe, model, place).answers(shares.of(model))

    if not recipe.side_by_side:
        return np.stack([one(model) for model in range(n_models)])
    with _one_thread_each(), ThreadPoolExecutor(n_threads, initializer=_alone) as pool:
        futures = [pool.submit(one, model) for model in range(n_models)]
        wait(futures, return_when=FIRST_EXCEPTION)
        shares.is_stopped = True  # those that are still running, where one failed
        for future in futures:
            future.cancel()
        faults = [f.exception() for f in futures if not f.cancelled()]
    for fault in faults:
        if fault is not None and not isinstance(fault, _StoppedBesideError):
            raise fault
    return np.stack([future.result() for future in futures])


def _alone() -> None:
    torch.set_num_threads(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _StoppedBesideError(Exception):
    """Another model was stopped, or failed."""


class _Shares:
    """Progress of models that are trained at the same time, as that of one work."""

    def __init__(self, n_models: int, on_progress: OnProgress) -> None:
        self._done, self._on_progress = np.zeros(n_models), on_progress
        self._lock = threading.Lock()
        self.is_stopped = False

    def of(self, model: int) -> OnProgress:
        def report(fraction: float, message: str) -> None:
            if self.is_stopped:
                raise _StoppedBesideError
            with self._lock:
                self._done[model] = fraction
                told = f"Model {model + 1} of {len(self._done)}: {message}"
                self._on_progress(float(self._done.mean()), told)

        return report


class _Trained:
    """One of the models: trained, or read back where it was before."""

    def __init__(self, trainees: Trainees, recipe: Recipe, model: int, folder: Path | None) -> None:
        self.trainees, self.recipe, self.model, self.folder = trainees, recipe, model, folder
        lesson = trainees.lesson
        self.rows = np.flatnonzero(lesson.trained[model])
        self.held = np.flatnonzero(lesson.validated[model])
        self.identity = {"lesson": lesson.digest, "model": model, **recipe.identity}

    def answers(self, on_progress: OnProgress) -> NDArray[np.float32]:
        """Return the probabilities for all texts of the lesson."""
        kept = self._kept()
        if kept is None:
            kept = self._train(on_progress)
            if self.folder is not None:
                save_artifact(self.folder, {"answers": kept}, {"identity": self.identity})
                shutil.rmtree(self.folder / "run", ignore_errors=True)
        on_progress(1.0, "trained")
        return kept

    def _kept(self) -> NDArray[np.float32] | None:
        lesson = self.trainees.lesson
        return read_kept(
            self.folder, "identity", self.identity, lambda a, _: lesson.answers_in(a, of_one=True)
        )

    def _train(self, on_progress: OnProgress) -> NDArray[np.float32]:
        network = self.trainees.make(self.model).to(pick_device())
        labels = torch.from_numpy(self.trainees.lesson.labels).to(pick_device())

        def loss(rows: NDArray[np.int64]) -> Tensor:
            network.train()
            chosen = self.rows[rows]
            return F.cross_entropy(self.trainees.logits(network, chosen), labels[chosen])

        def validate() -> float:
            said = self._probabilities(network, self.held).argmax(1)
            return float((said == self.trainees.lesson.labels[self.held]).mean())

        fused = pick_device().type in ("cpu", "cuda")
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self.recipe.learning_rate, weight_decay=0.0, fused=fused
        )
        train(network, optimizer, loss, validate, self._loop(), on_progress)
        return self._probabilities(network, np.arange(len(labels)))

    def _loop(self) -> ByLength:
        recipe, seed = self.recipe, self.trainees.lesson.seed
        return ByLength(
            n=len(self.rows),
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            seed=1000 * seed + self.model,
            identity=self.identity,
            clip_norm=recipe.clip_norm,
            patience=recipe.patience or recipe.epochs,
            keep_best=bool(recipe.patience),
            is_half=False,
            say_score="best validation accuracy {:.3f}".format,
            unit="texts",
            checkpoint_dir=None if self.folder is None else self.folder / "run",
            lengths=self.trainees.lengths[self.rows],
        )

    @torch.inference_mode()
    def _probabilities(self, network: nn.Module, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        network.eval()
        order = rows[np.argsort(self.trainees.lengths[rows], kind="stable")]
        parts = [
            torch.softmax(self.trainees.logits(network, order[i : i + _ANSWER_ROWS]).float(), 1)
            for i in range(0, len(order), _ANSWER_ROWS)
        ]
        out = np.empty((len(rows), self.trainees.lesson.n_classes), dtype=np.float32)
        out[np.argsort(self.trainees.lengths[rows], kind="stable")] = torch.cat(parts).cpu().numpy()
        return out
