"""The training loop of everything that learns here: resumable, early-stopped, and reporting.

A run that is killed resumes from its last checkpoint and ends with the weights that an
uninterrupted run on the same machine ends with: the order of each epoch comes from the seed, and
optimiser and random-number state are part of the checkpoint, and so is what a run keeps beside
them (`Loop.extra_state`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.errors import ArtifactError
from core.protocols import OnProgress, Restorable
from core.store import load_artifact, save_artifact
from core.training.checkpoint import (
    check_weights,
    number,
    optimizer_state,
    refusing,
    whole,
)

__all__ = ["Loop", "TrainingLog", "train"]

A = TypeVar("A", Tensor, NDArray[Any])


@dataclass
class TrainingLog:
    """What happened in a training run."""

    validation: list[float] = field(default_factory=list)
    """Validation score after each epoch."""
    seconds: float = 0.0
    n_sentences: int = 0
    """Training samples seen, repetitions counted."""
    n_resumed: int = 0

    @property
    def sentences_per_second(self) -> float:
        """Training speed, validation and checkpoints included."""
        return self.n_sentences / self.seconds if self.seconds else float("nan")


@dataclass(kw_only=True)
class Loop:
    """How to train: the settings shared by learned attacks and encoders.

    Parameters
    ----------
    n : int
        Number of training samples.
    identity : dict
        What makes this run this run (settings, encoder, data); a checkpoint of another identity
        is refused.
    decay : bool
        Lower the learning rate linearly to 5 % over the epochs; else keep it.
    rate_share : callable, optional
        Share of the learning rate at each step, counted from 0; replaces `decay`.
    clip_norm : float
        Longest gradient; 0 leaves gradients as they are.
    patience : int
        Stop after so many epochs without a better validation score.
    keep_best : bool
        End with the weights of the best epoch; else with those of the last.
    counts_start : bool
        Whether the weights to begin with count as an epoch, for what was trained before: where
        more training makes it worse, it stays as it was.
    is_half : bool
        Round the weights to float16 in the end.
    say_score : callable
        The last or, with `keep_best`, the best validation score in words.
    unit : str
        What a training sample is, in the plural.
    extra_state : Restorable, optional
        What the run changes beside network and optimiser, such as a privacy accountant or a second
        optimiser: saved with each checkpoint, restored when the run resumes.
    """

    n: int
    epochs: int
    batch_size: int
    seed: int
    identity: dict[str, Any]
    decay: bool = True
    rate_share: Callable[[int], float] | None = None
    clip_norm: float = 0.0
    patience: int = 10
    keep_best: bool = True
    counts_start: bool = False
    is_half: bool = True
    say_score: Callable[[float], str] = "best validation F1 {:.1f}".format
    unit: str = "sentences"
    checkpoint_dir: Path | None = None
    checkpoint_seconds: float = 60.0
    extra_state: Restorable | None = None

    @property
    def n_batches(self) -> int:
        """Batches in an epoch; the last may be smaller."""
        return -(-self.n // self.batch_size)

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the rows of each of the `n_batches` batches of an epoch.

        By default a permutation of all rows, cut into pieces. A loop that samples otherwise, such
        as each row by itself for differential privacy (Poisson sampling), overrides this. The
        answer must follow from seed and epoch alone: a run that resumes within an epoch asks for
        it again.
        """
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n)
        starts = range(0, self.n, self.batch_size)
        return [order[start : start + self.batch_size] for start in starts]


def train(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[NDArray[np.int64]], Tensor],
    validate: Callable[[], float],
    loop: Loop,
    on_progress: OnProgress,
) -> TrainingLog:
    """Minimise `loss_of(rows)` over batches of rows and leave the best epoch's weights in `module`.

    They are rounded to float16, the format of attacks' files, unless the loop says otherwise.

    Raises
    ------
    ArtifactError
        The checkpoint is damaged or belongs to another run.
    StoppedError
        Raised by `on_progress` and passed on, after a checkpoint was written.
    """
    run = _Run(module, optimizer, loop)
    run.resume()
    if loop.counts_start and run.is_new:
        run.best_score = validate()
    clock = time.monotonic()
    last_save = clock
    try:
        while run.epoch < loop.epochs and not run.is_finished:
            for rows in loop.batches(run.epoch)[run.batch :]:
                run.step(loss_of, rows)
                now = time.monotonic()
                run.log.seconds += now - clock
                clock = now
                on_progress(run.fraction, run.describe())
                if now - last_save > loop.checkpoint_seconds:
                    run.save()
                    last_save = now
            run.end_epoch(validate())
            run.save()
            last_save = time.monotonic()
    except BaseException:
        run.save()
        raise
    run.restore_best()
    if loop.is_half:
        _round_to_half(module)
    return run.log


@torch.no_grad()
def _round_to_half(module: nn.Module) -> None:
    """Round to what is stored, so that an attack answers the same before and after the disk."""
    for tensor in module.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(tensor.half())


class _Run:
    """The mutable state of one training run."""

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer, loop: Loop) -> None:
        self.module, self.optimizer, self.loop = module, optimizer, loop
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.best: dict[str, Tensor] = {}
        self._note_best()
        self.best_score = -np.inf
        self.epochs_without_gain = 0
        self.epoch = self.batch = 0
        self.log = TrainingLog()
        torch.manual_seed(loop.seed)

    @property
    def is_finished(self) -> bool:
        return self.epochs_without_gain >= self.loop.patience

    @property
    def is_new(self) -> bool:
        return not (self.epoch or self.batch or self.log.n_resumed)

    @property
    def fraction(self) -> float:
        return (self.epoch + self.batch / self.loop.n_batches) / self.loop.epochs

    def describe(self) -> str:
        left = self.log.seconds * (1 - self.fraction) / max(self.fraction, 1e-9)
        said = ""
        if self.log.validation:
            score = self.best_score if self.loop.keep_best else self.log.validation[-1]
            said = f", {self.loop.say_score(score)}"
        return (
            f"Epoch {self.epoch + 1} of at most {self.loop.epochs}{said}, "
            f"{self.log.sentences_per_second:,.0f} {self.loop.unit}/s, {left / 60:.1f} min left"
        )

    def step(self, loss_of: Callable[[NDArray[np.int64]], Tensor], rows: NDArray[np.int64]) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self._rate_share()
        self.optimizer.zero_grad(set_to_none=True)
        loss_of(rows).backward()
        if self.loop.clip_norm:
            nn.utils.clip_grad_norm_(self.module.parameters(), self.loop.clip_norm)
        self.optimizer.step()
        self.batch += 1
        self.log.n_sentences += len(rows)

    def _rate_share(self) -> float:
        if self.loop.rate_share is not None:
            return self.loop.rate_share(self.epoch * self.loop.n_batches + self.batch)
        return max(0.05, 1 - self.fraction) if self.loop.decay else 1.0

    def end_epoch(self, score: float) -> None:
        self.log.validation.append(score)
        self.epoch, self.batch = self.epoch + 1, 0
        self.epochs_without_gain += 1
        if score > self.best_score:
            self.best_score, self.epochs_without_gain = score, 0
            self._note_best()

    def _note_best(self) -> None:
        if self.loop.keep_best:
            self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}

    def restore_best(self) -> None:
        if self.loop.keep_best:
            self.module.load_state_dict(self.best)

    def save(self) -> None:
        """Write everything that the rest of the run depends on."""
        if self.loop.checkpoint_dir is None:
            return
        arrays = {f"now.{k}": v for k, v in self.module.state_dict().items()}
        arrays |= {f"best.{k}": v for k, v in self.best.items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            arrays |= {f"adam.{i}.{k}": torch.as_tensor(v) for k, v in state.items()}
        arrays["random"] = torch.get_rng_state()
        meta: dict[str, Any] = {
            "identity": self.loop.identity,
            "epoch": self.epoch,
            "batch": self.batch,
            "best_score": None if np.isinf(self.best_score) else self.best_score,
            "epochs_without_gain": self.epochs_without_gain,
            "log": vars(self.log),
        }
        numpy = {k: v.detach().cpu().numpy() for k, v in arrays.items()}
        if self.loop.extra_state is not None:
            extra, meta["extra"] = self.loop.extra_state.state()
            numpy |= {f"extra.{k}": v for k, v in extra.items()}
        save_artifact(self.loop.checkpoint_dir, numpy, meta)

    def resume(self) -> None:
        """Take up the checkpoint, if there is one."""
        folder = self.loop.checkpoint_dir
        if folder is None or not (folder / "model.json").exists():
            return
        arrays, meta = load_artifact(folder)
        if meta.get("identity") != self.loop.identity:
            raise ArtifactError(
                f"{folder} holds the checkpoint of another run (other settings, encoder or "
                "texts). Choose another folder; that run goes on when its own command runs again."
            )
        with refusing(folder):
            self._load_extra(folder, arrays, meta)
            tensors = {k: torch.from_numpy(v) for k, v in arrays.items()}
            self._load_weights(tensors)
            self._load_optimizer(_part(tensors, "adam."))
            torch.set_rng_state(tensors["random"])
            self._load_progress(meta)

    def _load_weights(self, tensors: dict[str, Tensor]) -> None:
        now, best = _part(tensors, "now."), _part(tensors, "best.")
        check_weights(self.module, now)
        if self.loop.keep_best:
            check_weights(self.module, best)
        self.module.load_state_dict(now)
        self.best = best

    def _load_progress(self, meta: dict[str, Any]) -> None:
        self.epoch = whole(meta, "epoch", self.loop.epochs)
        self.batch = whole(meta, "batch", self.loop.n_batches)
        best = meta["best_score"]
        self.best_score = -np.inf if best is None else number(best, "best_score")
        self.epochs_without_gain = whole(meta, "epochs_without_gain")
        log = meta["log"]
        self.log = TrainingLog(
            [number(score, "a score") for score in log["validation"]],
            number(log["seconds"], "seconds"),
            whole(log, "n_sentences"),
            whole(log, "n_resumed") + 1,
        )

    def _load_extra(
        self, folder: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]
    ) -> None:
        if self.loop.extra_state is None:
            return
        if "extra" not in meta:
            raise ArtifactError(
                f"{folder} holds a checkpoint without what this run keeps beside its network. "
                "Choose another folder, or move it aside."
            )
        self.loop.extra_state.load_state(_part(arrays, "extra."), meta["extra"])

    def _load_optimizer(self, flat: dict[str, Tensor]) -> None:
        packed = self.optimizer.state_dict()
        packed["state"] = optimizer_state(self.optimizer, flat)
        self.optimizer.load_state_dict(packed)


def _part(tensors: dict[str, A], prefix: str) -> dict[str, A]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
