"""The tables of adversarial training: how wide intervals are, and which weights are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.results import Interval, Score
from core.studies.adversarial_tables import settings_in
from core.studies.rows import Row


@pytest.mark.parametrize("hides", ["words", "attribute"])
@pytest.mark.parametrize(("group", "half"), [("book", 3.0), ("", 1.5)])
def test_targets_of_the_same_documents_are_one_sample_over_seeds(
    hides: str, group: str, half: float
) -> None:
    """As in the trade-off: of four seeds the interval is as wide as of one, not half as wide."""
    rows = [
        Row({"encoder": "minilm", "hides": hides, "defence_kind": "none", "weight": 0.0,
             "seed": seed, "group": group},
            {"read": Score(30.0, Interval(27.0, 33.0), 100, 5.0)},
            {"when": "after", "attacker": "linear"})
        for seed in range(4)
    ]  # fmt: skip
    (found,) = settings_in(rows)
    (read,) = found.after.values()
    assert (read.value, read.n) == (30.0, 100 if group else 400)
    assert (read.ci95.low, read.ci95.high) == pytest.approx((30 - half, 30 + half))


@pytest.mark.parametrize("option", ["--word-weights", "--attribute-weights"])
@pytest.mark.parametrize("weight", ["nan", "inf", "-1", "much"])
def test_a_weight_that_is_none_is_refused_on_the_command_line(
    core: Any, tmp_path: Path, option: str, weight: str
) -> None:
    told = core("study", "adversarial", "--target", "texts.csv#text", "--tasks", "first=task.csv",
                option, weight, "--out", tmp_path / "found.json")  # fmt: skip
    (refused,) = [line for line in told.err.splitlines() if "error: " in line]
    assert told.status == 2 and "weights" in refused and weight in refused
    assert "Traceback" not in told.out + told.err and not list(tmp_path.glob("found*"))
