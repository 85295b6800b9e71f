"""The shared training loop: resumable, with early stopping and progress reports.

A killed run resumes from its last checkpoint and ends with the same weights as an uninterrupted run
on the same machine. The order of each epoch comes from the seed. The checkpoint contains the state
of the optimiser, of the random numbers, and any other state (`Loop.extra_state`).
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

from leakscope.core.errors import ArtifactError
from leakscope.core.protocols import OnProgress, Restorable
from leakscope.core.storage.artifacts import load_artifact, save_artifact
from leakscope.core.training.checkpoint import (
    check_weights,
    checkpoint_errors,
    optimizer_state,
    read_count,
    read_number,
)

A = TypeVar("A", Tensor, NDArray[Any])


@dataclass
class TrainingLog:
    """Validation scores, seconds and sample counts of a training run."""

    validation: list[float] = field(default_factory=list)
    """Validation score after each epoch."""
    seconds: float = 0.0
    n_sentences: int = 0
    """Training samples seen, counting repetitions."""
    n_resumed: int = 0

    @property
    def sentences_per_second(self) -> float:
        """Training samples per second, validation and checkpoints included."""
        return self.n_sentences / self.seconds if self.seconds else float("nan")


@dataclass(kw_only=True)
class Loop:
    """Settings of a training run, shared by learned attacks and encoders.

    Parameters
    ----------
    n : int
        Number of training samples.
    identity : dict
        What identifies this run (settings, encoder, data); a checkpoint with another identity is
        refused.
    decay : bool
        Lower the learning rate linearly to 5 % over the epochs; else keep it constant.
    rate_share : callable, optional
        Share of the learning rate at each step, counted from 0; replaces `decay`.
    clip_norm : float
        Maximum gradient norm; 0 for no limit.
    patience : int
        Stop after this many epochs without a better validation score.
    keep_best : bool
        End with the weights of the best epoch; else with those of the last.
    counts_start : bool
        Whether the initial weights count as an epoch, for a network that was trained before: if
        more training makes it worse, it is left unchanged.
    is_half : bool
        Round the weights to float16 at the end.
    say_score : callable
        Formats the last or, with `keep_best`, the best validation score.
    unit : str
        The name of a training sample, in the plural.
    extra_state : Restorable, optional
        Further state that the run changes, such as a privacy accountant or a second optimiser. It
        is saved with each checkpoint and restored when the run resumes.
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
        """Batches per epoch; the last may be smaller."""
        return -(-self.n // self.batch_size)

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return the row indices of each batch of an epoch, shuffled by seed and epoch.

        By default, this is a permutation of all rows, cut into batches. A loop that samples in
        another way, such as Poisson sampling for differential privacy, overrides it. The result
        must depend on seed and epoch only, because a run that resumes within an epoch asks for it
        again.
        """
        order = np.random.default_rng([self.seed, epoch]).permutation(self.n)
        starts = range(0, self.n, self.batch_size)
        return [order[start : start + self.batch_size] for start in starts]


@dataclass(kw_only=True)
class LengthBatchedLoop(Loop):
    """A training loop whose batches contain texts of similar length.

    Parameters
    ----------
    lengths : ndarray of int64, shape (n,)
    pool : int
        Batches whose texts are sorted by length together.
    """

    lengths: NDArray[np.int64]
    pool: int = 20

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        """Return an epoch's batches, cut from length-sorted pools of rows, in random order."""
        rng = np.random.default_rng([self.seed, epoch])
        order, size = rng.permutation(self.n), self.batch_size
        found = []
        for start in range(0, self.n, self.pool * size):
            pool = order[start : start + self.pool * size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            found += [pool[i : i + size] for i in range(0, len(pool), size)]
        return [found[i] for i in rng.permutation(len(found))]


def train(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[NDArray[np.int64]], Tensor],
    validate: Callable[[], float],
    loop: Loop,
    on_progress: OnProgress,
) -> TrainingLog:
    """Train `module` on batches of rows and return the log; load its best weights if kept.

    The weights are rounded to float16, as in attacks' files, unless the loop says otherwise.

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
    """Round a module's weights in place to float16, the precision in which they are stored."""
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
        """Whether early stopping's patience is used up."""
        return self.epochs_without_gain >= self.loop.patience

    @property
    def is_new(self) -> bool:
        """Whether no step was made and no checkpoint resumed."""
        return not (self.epoch or self.batch or self.log.n_resumed)

    @property
    def fraction(self) -> float:
        """Share of all steps that are done."""
        return (self.epoch + self.batch / self.loop.n_batches) / self.loop.epochs

    def describe(self) -> str:
        """Return a progress message: epoch, score, speed and time left."""
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
        """Compute the loss of a batch of row indices and make one optimiser step."""
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
        """Return the factor by which the learning rate is multiplied at this step."""
        if self.loop.rate_share is not None:
            return self.loop.rate_share(self.epoch * self.loop.n_batches + self.batch)
        return max(0.05, 1 - self.fraction) if self.loop.decay else 1.0

    def end_epoch(self, score: float) -> None:
        """Record an epoch's validation score, and copy the weights if it is the best so far."""
        self.log.validation.append(score)
        self.epoch, self.batch = self.epoch + 1, 0
        self.epochs_without_gain += 1
        if score > self.best_score:
            self.best_score, self.epochs_without_gain = score, 0
            self._note_best()

    def _note_best(self) -> None:
        """Copy the current weights as the best ones, if the loop keeps the best."""
        if self.loop.keep_best:
            self.best = {k: v.detach().clone() for k, v in self.module.state_dict().items()}

    def restore_best(self) -> None:
        """Load the best epoch's weights into the module, if the loop keeps them."""
        if self.loop.keep_best:
            self.module.load_state_dict(self.best)

    def save(self) -> None:
        """Write a checkpoint (weights, optimiser, random state, progress) if there is a folder."""
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
        """Restore the checkpoint, if there is one; raise if it belongs to another run."""
        folder = self.loop.checkpoint_dir
        if folder is None or not (folder / "model.json").exists():
            return
        arrays, meta = load_artifact(folder)
        if meta.get("identity") != self.loop.identity:
            raise ArtifactError(
                f"{folder} contains the checkpoint of another run (other settings, encoder or "
                "texts). Choose another folder. That run resumes when you run its own command "
                "again."
            )
        with checkpoint_errors(folder):
            self._load_extra(folder, arrays, meta)
            tensors = {k: torch.from_numpy(v) for k, v in arrays.items()}
            self._load_weights(tensors)
            self._load_optimizer(_select_prefix(tensors, "adam."))
            torch.set_rng_state(tensors["random"])
            self._load_progress(meta)

    def _load_weights(self, tensors: dict[str, Tensor]) -> None:
        """Restore the current and the best weights from a checkpoint's tensors."""
        now, best = _select_prefix(tensors, "now."), _select_prefix(tensors, "best.")
        check_weights(self.module, now)
        if self.loop.keep_best:
            check_weights(self.module, best)
        self.module.load_state_dict(now)
        self.best = best

    def _load_progress(self, meta: dict[str, Any]) -> None:
        """Restore epoch, batch, scores and log from a checkpoint's metadata."""
        self.epoch = read_count(meta, "epoch", self.loop.epochs)
        self.batch = read_count(meta, "batch", self.loop.n_batches)
        best = meta["best_score"]
        self.best_score = -np.inf if best is None else read_number(best, "best_score")
        self.epochs_without_gain = read_count(meta, "epochs_without_gain")
        log = meta["log"]
        self.log = TrainingLog(
            [read_number(score, "a score") for score in log["validation"]],
            read_number(log["seconds"], "seconds"),
            read_count(log, "n_sentences"),
            read_count(log, "n_resumed") + 1,
        )

    def _load_extra(
        self, folder: Path, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]
    ) -> None:
        """Restore the loop's `extra_state`, if it has one, from a checkpoint."""
        if self.loop.extra_state is None:
            return
        if "extra" not in meta:
            raise ArtifactError(
                f"{folder} contains a checkpoint without the extra state that this run needs. "
                "Choose another folder, or move it away."
            )
        self.loop.extra_state.load_state(_select_prefix(arrays, "extra."), meta["extra"])

    def _load_optimizer(self, flat: dict[str, Tensor]) -> None:
        """Restore the optimiser's state from a checkpoint's tensors, after checking them."""
        packed = self.optimizer.state_dict()
        packed["state"] = optimizer_state(self.optimizer, flat)
        self.optimizer.load_state_dict(packed)


def _select_prefix(tensors: dict[str, A], prefix: str) -> dict[str, A]:
    """Select the tensors whose names start with a prefix, and remove it from the names."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
