"""The training loop's two seams: where its batches come from, and what it keeps beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from leakscope.core.errors import ArtifactError, StoppedError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.training.loop import Loop, train

N, EPOCHS = 10, 4
TARGETS = torch.arange(N, dtype=torch.float32)


@dataclass
class Accountant:
    """Counts steps, and the rows of each."""

    sizes: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def note(self, rows: NDArray[np.int64]) -> None:
        self.sizes.append(len(rows))
        self.rows += rows.tolist()

    def state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {"rows": np.array(self.rows, np.int64)}, {"sizes": self.sizes}

    def load_state(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Self:
        self.rows, self.sizes = arrays["rows"].tolist(), list(meta["sizes"])
        return self


@dataclass(kw_only=True)
class PoissonLoop(Loop):
    """Takes each row by itself, with the same probability."""

    def batches(self, epoch: int) -> Sequence[NDArray[np.int64]]:
        rng = np.random.default_rng([self.seed, epoch])
        share = self.batch_size / self.n
        return [np.flatnonzero(rng.random(self.n) < share) for _ in range(self.n_batches)]


def loop_of(kind: type[Loop] = Loop, **more: Any) -> Loop:
    settings = {
        "n": N,
        "epochs": EPOCHS,
        "batch_size": 4,
        "seed": 7,
        "identity": {"run": 1},
        "is_half": False,
    }
    return kind(**{**settings, **more})


def run(loop: Loop, on_progress: OnProgress = no_progress) -> tuple[nn.Module, Accountant]:
    """Train a line through numbers and return it, with what the accountant saw."""
    torch.manual_seed(0)
    module = nn.Linear(1, 1)
    accountant = loop.extra_state if isinstance(loop.extra_state, Accountant) else Accountant()

    def loss_of(rows: NDArray[np.int64]) -> torch.Tensor:
        accountant.note(rows)
        x = TARGETS[rows, None]
        return ((module(x) - 2 * x) ** 2).sum() / 40

    @torch.no_grad()
    def score() -> float:
        return -float(((module(TARGETS[:, None]) - 2 * TARGETS[:, None]) ** 2).mean())

    train(module, torch.optim.Adam(module.parameters(), 0.05), loss_of, score, loop, on_progress)
    return module, accountant


def stop_after(n: int) -> OnProgress:
    steps = iter(range(n - 1))

    def stop(fraction: float, message: str) -> None:
        if next(steps, None) is None:
            raise StoppedError("enough")

    return stop


def test_each_epoch_is_the_seed_s_permutation_in_pieces() -> None:
    _, seen = run(loop_of())
    assert seen.sizes == [4, 4, 2] * EPOCHS
    wanted = [np.random.default_rng([7, epoch]).permutation(N) for epoch in range(EPOCHS)]
    assert seen.rows == np.concatenate(wanted).tolist()


def test_a_loop_may_draw_its_batches_otherwise() -> None:
    loop = loop_of(PoissonLoop)
    _, seen = run(loop)
    wanted = [batch for epoch in range(EPOCHS) for batch in loop.batches(epoch)]
    assert seen.sizes == [len(batch) for batch in wanted]
    assert seen.rows == np.concatenate(wanted).tolist()
    assert len(set(seen.sizes)) > 2, "each row is drawn by itself"


@pytest.mark.parametrize("kind", [Loop, PoissonLoop])
@pytest.mark.parametrize("n_steps", [1, 3, 5, 11])
def test_a_stopped_run_ends_as_a_whole_one_with_all_that_it_keeps(
    kind: type[Loop], n_steps: int, tmp_path: Path
) -> None:
    whole, wanted = run(loop_of(kind, extra_state=Accountant()))
    kept = {"checkpoint_dir": tmp_path, "extra_state": Accountant()}
    with pytest.raises(StoppedError):
        run(loop_of(kind, **kept), stop_after(n_steps))
    assert len(kept["extra_state"].sizes) == n_steps
    fresh = Accountant()
    resumed, seen = run(loop_of(kind, checkpoint_dir=tmp_path, extra_state=fresh))
    assert seen is fresh and seen == wanted
    for one, other in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)


def test_extra_state_changes_no_weights() -> None:
    without, _ = run(loop_of())
    beside, _ = run(loop_of(extra_state=Accountant()))
    for one, other in zip(without.parameters(), beside.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_that_lacks_the_extra_state_is_refused_by_folder(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(loop_of(checkpoint_dir=tmp_path), stop_after(3))
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        run(loop_of(checkpoint_dir=tmp_path, extra_state=Accountant()))


def trained(
    loop: Loop, scores: Sequence[float] = (), on_progress: OnProgress = no_progress
) -> tuple[list[float], list[float]]:
    """Train a number by noise alone; return it after each epoch, and what it ends with."""
    torch.manual_seed(0)
    module, seen, told = nn.Linear(1, 1, bias=False), list[float](), iter(scores)

    def loss_of(rows: NDArray[np.int64]) -> torch.Tensor:
        return module(torch.randn(len(rows), 1)).sum()

    def score() -> float:
        seen.append(module.weight.item())
        return next(told, float(len(seen)))

    train(module, torch.optim.SGD(module.parameters(), 0.1), loss_of, score, loop, on_progress)
    return seen, [module.weight.item()]


@pytest.mark.parametrize(("keep_best", "kept"), [(True, 1), (False, 3)])
def test_the_epoch_of_the_best_score_is_kept(keep_best: bool, kept: int) -> None:
    seen, ended = trained(loop_of(keep_best=keep_best), (1.0, 3.0, 2.0, 0.0))
    assert ended == [seen[kept]] and len(set(seen)) == EPOCHS


def test_a_run_that_goes_on_draws_the_numbers_that_it_would_have_drawn(tmp_path: Path) -> None:
    _, whole = trained(loop_of())
    loop = loop_of(checkpoint_dir=tmp_path / "run", checkpoint_seconds=1e9)
    with pytest.raises(StoppedError):
        trained(loop, on_progress=stop_after(5))
    _, resumed = trained(loop)
    assert resumed == whole


def test_the_checkpoint_of_another_run_is_refused_by_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trained(loop_of(checkpoint_dir=folder))
    with pytest.raises(ArtifactError, match="the checkpoint of another run") as refused:
        trained(loop_of(checkpoint_dir=folder, identity={"run": 2}))
    assert str(folder) in str(refused.value)
