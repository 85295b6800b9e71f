"""The tables of adversarial training: how wide intervals are, and which weights are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.results import Interval, Score
from core.studies.adversarial_tables import markdown, settings_in
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


def test_how_often_the_right_label_is_among_the_first_five_is_told() -> None:
    shared = {
        "encoder": "minilm",
        "hides": "attribute",
        "defence_kind": "none",
        "weight": 0.0,
        "seed": 0,
        "n_defence": 40,
        "n_known": 40,
        "n_targets": 100,
        "n_labels": 20,
    }
    first, five = (Score(v, Interval(v - 3, v + 3), 100, 5.0) for v in (30.0, 70.0))
    facts = {"when": "after", "attacker": "knn"}
    rows = [Row(shared, {"read": first, "read_top5": five}, facts)]
    assert settings_in(rows)[0].after_top5 == {"knn": five}
    head, row = (
        line for line in markdown(rows).splitlines() if line.startswith(("| enc", "| min"))
    )
    place = head.split("|").index(" in the first five: knn ")
    assert row.split("|")[place].strip() == "70.0 [67.0, 73.0]"
