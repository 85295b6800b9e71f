"""A loss that goes astray is told from one that is noisy; what is watched survives a kill."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from leakscope.core.errors import DivergedError
from leakscope.core.storage.artifacts import save_artifact
from leakscope.core.training.watch import (
    CombinedState,
    LossWatch,
    RestorableGenerator,
    discard_on_divergence,
)

CORE = Path(__file__).parents[1] / "core"


def watched(losses: list[float], watch: LossWatch) -> LossWatch:
    for loss in losses:
        watch.check(torch.tensor(loss))
    return watch


def test_what_diverges_has_one_error() -> None:
    """Whoever stops a training, and whoever tells of it, means the same."""
    found = [
        str(path.relative_to(CORE))
        for path in sorted(CORE.rglob("*.py"))
        if re.search(r"^class \w*Diverged", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert found == ["errors.py"]


@pytest.mark.parametrize("error", [DivergedError("astray"), KeyboardInterrupt()])
def test_the_checkpoint_alone_goes_and_only_of_what_diverged(
    error: BaseException, tmp_path: Path
) -> None:
    for place in (tmp_path / "own", tmp_path / "shared"):
        save_artifact(place, {"w": np.ones(3, np.float32)}, {"epoch": 1})
    (tmp_path / "shared" / "notes.txt").write_text("not ours")
    for place in (tmp_path / "own", tmp_path / "shared", tmp_path / "none", None):
        with pytest.raises(type(error)), discard_on_divergence(place):
            raise error
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    is_over = isinstance(error, DivergedError)
    assert left == {"shared/notes.txt"} if is_over else len(left) == 5
    assert (tmp_path / "own").exists() is not is_over


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_stops_at_once(bad: float) -> None:
    with pytest.raises(
        DivergedError, match=r"of a net was stopped after 1 steps.* NaN or infinite"
    ):
        watched([1.0, bad], LossWatch("a net"))


def test_what_rises_stops_and_what_is_noisy_does_not() -> None:
    rng = np.random.default_rng(0)
    noisy = (1 + rng.random(500)).tolist()
    assert watched(noisy, LossWatch("a net")).recent == pytest.approx(1.5, abs=0.3)
    with pytest.raises(DivergedError, match=r"rose from 1\.00 to"):
        watched([1.0, *[4.0] * 40], LossWatch("a net"))
    watched([1.0, *[4.0] * 10, *[1.0] * 40], LossWatch("a net"))


def test_what_is_kept_beside_a_network_comes_back_through_json() -> None:
    one = CombinedState(
        {"noise": RestorableGenerator(3, 4), "watch": watched([2.0, 3.0], LossWatch("a net"))}
    )
    drawing = one.parts["noise"]
    assert isinstance(drawing, RestorableGenerator)
    drawing.rng.random(5)
    arrays, meta = one.state()
    two = CombinedState({"noise": RestorableGenerator(9), "watch": LossWatch("a net")})
    two.load_state(arrays, json.loads(json.dumps(meta)))
    other, watch = two.parts["noise"], two.parts["watch"]
    assert isinstance(other, RestorableGenerator) and isinstance(watch, LossWatch)
    assert other.rng.random() == drawing.rng.random()
    assert (watch.n_steps, watch.first, watch.recent) == (2, 2.0, 2.5)
