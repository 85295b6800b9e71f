"""Train several networks of one kind in parallel, each on its part of the same texts.

Each is stopped early by itself. The outputs of finished networks are stored, and interrupted
networks resume from their checkpoint.
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

from leakscope.core.attacks.membership.classifiers.targets.training_batch import TrainingBatch
from leakscope.core.protocols import OnProgress
from leakscope.core.storage.artifacts import save_artifact
from leakscope.core.training.checkpoint import load_finished
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train

_ANSWER_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Training settings of each network.

    Parameters
    ----------
    identity : dict
        The settings; a checkpoint with other settings is refused.
    side_by_side : bool
        Whether several are trained at the same time, one on each processor.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int
    identity: dict[str, Any]
    clip_norm: float = 1.0
    side_by_side: bool = True


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """The networks to train: one for each model, all over the same texts.

    Attributes
    ----------
    make : callable
        Returns the untrained network of a model number, with seeded weights.
    logits : callable
        Returns (batch, n_classes) logits of a network for rows of the texts.
    lengths : ndarray of int64, shape (n,)
        Of the texts, in tokens.
    """

    batch: TrainingBatch
    make: Callable[[int], nn.Module]
    logits: Callable[[nn.Module, NDArray[np.int64]], Tensor]
    lengths: NDArray[np.int64]


def train_in_parallel(
    task: TrainingTask, recipe: Recipe, folder: Path | None, on_progress: OnProgress
) -> NDArray[np.float32]:
    """Train all models and return their probabilities for all texts, (n_models, n, n_classes).

    Where several are trained at the same time, each uses one thread: a step of a small network is
    too short to be split over threads.

    Raises
    ------
    ArtifactError
        The folder holds the checkpoint of another run.
    StoppedError
        Raised by `on_progress`; finished models are stored.
    """
    n_models = task.batch.n_models
    n_threads = min(torch.get_num_threads(), n_models)
    shares = _CombinedProgress(n_models, on_progress)

    def one(model: int) -> NDArray[np.float32]:
        place = None if folder is None else folder / f"model-{model}"
        return _ModelTraining(task, recipe, model, place).answers(shares.of(model))

    if not recipe.side_by_side:
        return np.stack([one(model) for model in range(n_models)])
    with _threads_restored(), ThreadPoolExecutor(n_threads, initializer=_use_one_thread) as pool:
        futures = [pool.submit(one, model) for model in range(n_models)]
        wait(futures, return_when=FIRST_EXCEPTION)
        shares.is_stopped = True  # stop those still running if one failed
        for future in futures:
            future.cancel()
        faults = [f.exception() for f in futures if not f.cancelled()]
    for fault in faults:
        if fault is not None and not isinstance(fault, _StoppedBesideError):
            raise fault
    return np.stack([future.result() for future in futures])


def _use_one_thread() -> None:
    """Limit this worker thread to one PyTorch thread."""
    torch.set_num_threads(1)


@contextmanager
def _threads_restored() -> Iterator[None]:
    """Restore the number of PyTorch threads after parallel training."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _StoppedBesideError(Exception):
    """Raised in a model's training when another model was stopped or failed."""


class _CombinedProgress:
    """Combines the progress of models that are trained at the same time into one."""

    def __init__(self, n_models: int, on_progress: OnProgress) -> None:
        self._done, self._on_progress = np.zeros(n_models), on_progress
        self._lock = threading.Lock()
        self.is_stopped = False

    def of(self, model: int) -> OnProgress:
        """Return the progress callback of one model."""

        def report(fraction: float, message: str) -> None:
            if self.is_stopped:
                raise _StoppedBesideError
            with self._lock:
                self._done[model] = fraction
                line = f"Model {model + 1} of {len(self._done)}: {message}"
                self._on_progress(float(self._done.mean()), line)

        return report


class _ModelTraining:
    """The training of one model: its rows, checkpoint and stored outputs."""

    def __init__(self, task: TrainingTask, recipe: Recipe, model: int, folder: Path | None) -> None:
        self.task, self.recipe, self.model, self.folder = task, recipe, model, folder
        batch = task.batch
        self.rows = np.flatnonzero(batch.trained[model])
        self.held = np.flatnonzero(batch.validated[model])
        self.identity = {"lesson": batch.digest, "model": model, **recipe.identity}

    def answers(self, on_progress: OnProgress) -> NDArray[np.float32]:
        """Return the model's probabilities for all texts, trained now or loaded if stored."""
        kept = self._stored_answers()
        if kept is None:
            kept = self._train(on_progress)
            if self.folder is not None:
                save_artifact(self.folder, {"answers": kept}, {"identity": self.identity})
                shutil.rmtree(self.folder / "run", ignore_errors=True)
        on_progress(1.0, "trained")
        return kept

    def _stored_answers(self) -> NDArray[np.float32] | None:
        """Load the stored outputs of a finished run; None if there are none."""
        batch = self.task.batch
        return load_finished(
            self.folder, "identity", self.identity, lambda a, _: batch.answers_in(a, of_one=True)
        )

    def _train(self, on_progress: OnProgress) -> NDArray[np.float32]:
        """Train the network with early stopping and return its probabilities for all texts."""
        network = self.task.make(self.model).to(pick_device())
        labels = torch.from_numpy(self.task.batch.labels).to(pick_device())

        def loss(rows: NDArray[np.int64]) -> Tensor:
            network.train()
            chosen = self.rows[rows]
            return F.cross_entropy(self.task.logits(network, chosen), labels[chosen])

        def validate() -> float:
            predicted = self._probabilities(network, self.held).argmax(1)
            return float((predicted == self.task.batch.labels[self.held]).mean())

        fused = pick_device().type in ("cpu", "cuda")
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self.recipe.learning_rate, weight_decay=0.0, fused=fused
        )
        train(network, optimizer, loss, validate, self._loop(), on_progress)
        return self._probabilities(network, np.arange(len(labels)))

    def _loop(self) -> LengthBatchedLoop:
        """Return the training loop of this model."""
        recipe, seed = self.recipe, self.task.batch.seed
        return LengthBatchedLoop(
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
            lengths=self.task.lengths[self.rows],
        )

    @torch.inference_mode()
    def _probabilities(self, network: nn.Module, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a network's probabilities for rows, computed in batches sorted by length."""
        network.eval()
        order = rows[np.argsort(self.task.lengths[rows], kind="stable")]
        parts = [
            torch.softmax(self.task.logits(network, order[i : i + _ANSWER_ROWS]).float(), 1)
            for i in range(0, len(order), _ANSWER_ROWS)
        ]
        out = np.empty((len(rows), self.task.batch.n_classes), dtype=np.float32)
        out[np.argsort(self.task.lengths[rows], kind="stable")] = torch.cat(parts).cpu().numpy()
        return out
