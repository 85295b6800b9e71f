"""Train several networks of one kind in parallel, each on its part of the same texts.

Each is stopped early by itself. The outputs of finished networks are stored, and interrupted
networks resume from their checkpoint.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
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
from leakscope.core.specs import setting_values
from leakscope.core.storage.artifacts import save_artifact
from leakscope.core.training.checkpoint import load_finished
from leakscope.core.training.devices import pick_device
from leakscope.core.training.loop import LengthBatchedLoop, train

_ANSWER_ROWS = 256


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """The networks to train: one for each model, all over the same texts.

    Attributes
    ----------
    settings : object
        The dataclass of settings: epochs, batch_size, learning_rate and patience. A checkpoint with
        other settings is refused.
    make : callable
        Returns the untrained network of a model number, with seeded weights.
    logits : callable
        Returns (batch, n_classes) logits of a network for rows of the texts.
    lengths : ndarray of int64, shape (n,)
        Of the texts, in tokens.
    """

    settings: Any
    batch: TrainingBatch
    make: Callable[[int], nn.Module]
    logits: Callable[[nn.Module, NDArray[np.int64]], Tensor]
    lengths: NDArray[np.int64]


def train_in_parallel(
    task: TrainingTask,
    checkpoint_dir: str | None,
    on_progress: OnProgress,
    *,
    side_by_side: bool = True,
) -> NDArray[np.float32]:
    """Train all models and return their probabilities for all texts, (n_models, n, n_classes).

    Where several are trained at the same time, each uses one thread: a step of a small network is
    too short to be split over threads.

    Parameters
    ----------
    side_by_side : bool
        Whether several are trained at the same time, one on each processor.

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

    def train_one(model: int) -> NDArray[np.float32]:
        """Train one model, or load its stored result; return its probabilities for all texts."""
        place = None if checkpoint_dir is None else Path(checkpoint_dir) / f"model-{model}"
        return _ModelTraining(task, model, place).answers(shares.of(model))

    if not side_by_side:
        return np.stack([train_one(model) for model in range(n_models)])
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(
            n_threads, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            futures = [pool.submit(train_one, model) for model in range(n_models)]
            wait(futures, return_when=FIRST_EXCEPTION)
            shares.is_stopped = True  # stop those still running if one failed
            for future in futures:
                future.cancel()
            faults = [f.exception() for f in futures if not f.cancelled()]
    finally:
        torch.set_num_threads(before)
    for fault in faults:
        if fault is not None and not isinstance(fault, _StoppedBesideError):
            raise fault
    return np.stack([future.result() for future in futures])


class _StoppedBesideError(Exception):
    """Raised in a model's training when another model was stopped or failed."""


class _CombinedProgress:
    """Combines the progress of models that are trained at the same time into one."""

    def __init__(self, n_models: int, on_progress: OnProgress) -> None:
        self._done, self._on_progress = np.zeros(n_models), on_progress
        self._lock = threading.Lock()
        self.is_stopped = False

    def of(self, model: int) -> OnProgress:
        """Return one model's progress callback, which reports the mean over all models."""

        def report(fraction: float, message: str) -> None:
            """Report the mean progress of all models; stop if another model failed."""
            if self.is_stopped:
                raise _StoppedBesideError
            with self._lock:
                self._done[model] = fraction
                line = f"Model {model + 1} of {len(self._done)}: {message}"
                self._on_progress(float(self._done.mean()), line)

        return report


class _ModelTraining:
    """The training of one model: its rows, checkpoint and stored outputs."""

    def __init__(self, task: TrainingTask, model: int, folder: Path | None) -> None:
        self.task, self.model, self.folder = task, model, folder
        batch = task.batch
        self.rows = np.flatnonzero(batch.trained[model])
        self.held = np.flatnonzero(batch.validated[model])
        settings = setting_values(task.settings)
        self.identity = {"lesson": batch.digest, "model": model, **settings}

    def answers(self, on_progress: OnProgress) -> NDArray[np.float32]:
        """Train the model, or load its stored result; return its probabilities for all texts."""
        batch = self.task.batch
        kept = load_finished(
            self.folder, "identity", self.identity, lambda a, _: batch.answers_in(a, of_one=True)
        )
        if kept is None:
            kept = self._train(on_progress)
            if self.folder is not None:
                save_artifact(self.folder, {"answers": kept}, {"identity": self.identity})
                shutil.rmtree(self.folder / "run", ignore_errors=True)
        on_progress(1.0, "trained")
        return kept

    def _train(self, on_progress: OnProgress) -> NDArray[np.float32]:
        """Train the network with early stopping and return its probabilities for all texts."""
        network = self.task.make(self.model).to(pick_device())
        labels = torch.from_numpy(self.task.batch.labels).to(pick_device())

        def loss(rows: NDArray[np.int64]) -> Tensor:
            """Return the mean cross-entropy of some of the model's training rows."""
            network.train()
            chosen = self.rows[rows]
            return F.cross_entropy(self.task.logits(network, chosen), labels[chosen])

        def validate() -> float:
            """Return the network's accuracy on the validation texts."""
            predicted = self._probabilities(network, self.held).argmax(1)
            return float((predicted == self.task.batch.labels[self.held]).mean())

        fused = pick_device().type in ("cpu", "cuda")
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=self.task.settings.learning_rate, weight_decay=0.0, fused=fused
        )
        settings = self.task.settings
        loop = LengthBatchedLoop(
            n=len(self.rows),
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            seed=1000 * self.task.batch.seed + self.model,
            identity=self.identity,
            clip_norm=1.0,
            patience=settings.patience or settings.epochs,
            keep_best=bool(settings.patience),
            is_half=False,
            say_score="best validation accuracy {:.3f}".format,
            unit="texts",
            checkpoint_dir=None if self.folder is None else self.folder / "run",
            lengths=self.task.lengths[self.rows],
        )
        train(network, optimizer, loss, validate, loop, on_progress)
        return self._probabilities(network, np.arange(len(labels)))

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
