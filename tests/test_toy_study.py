"""Adding a study takes one file and one entry: the command line finds it and knows its settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import Cell, Row
from leakscope.core.specs import setting
from leakscope.core.studies.registry import STUDIES, StudyEntry

NAME = "dice"


@dataclass(frozen=True, kw_only=True)
class DiceStudy:
    """How often a die shows a six."""

    sides: tuple[int, ...] = setting((6,), "faces of the die", low=2)
    n_throws: int = setting(60, "throws", low=1, flag="throws")
    is_loaded: bool = setting(False, "it shows its highest face", flag="loaded")

    def cells(self) -> list[Cell]:
        return [
            {"study": NAME, "sides": n, "n_throws": self.n_throws, "loaded": self.is_loaded}
            for n in self.sides
        ]


def measure(cell: Cell, folder: Path) -> list[Row]:
    share = 100.0 if cell["loaded"] else 100 / cell["sides"]
    score = Score(share, Interval(share - 1, share + 1), cell["n_throws"], 100 / cell["sides"])
    return [Row(scores={"share": score}, facts={"n": cell["n_throws"]})]


def markdown(rows: Sequence[Row]) -> str:
    return "".join(f"| {row['sides']} | {row.format('share')} |\n" for row in rows)


@pytest.fixture(autouse=True)
def entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toy_study", sys.modules[__name__])
    told = StudyEntry("Dice", "how often a six comes", "nobody", "toy_study:DiceStudy")
    monkeypatch.setitem(STUDIES, NAME, told)


def test_it_runs_with_its_own_settings_and_is_written(core: Any, tmp_path: Path) -> None:
    out = tmp_path / "dice.json"
    given = ["study", NAME, "--sides", "4", "6", "--throws", "30", "--loaded", "--out", out]
    rows = core(*given, "--json").json()["rows"]
    assert [(row["sides"], row["share"], row["share_chance"]) for row in rows] == [
        (4, 100.0, 25.0),
        (6, 100.0, 100 / 6),
    ]
    assert out.with_suffix(".md").read_text() == "| 4 | 100.0 [99.0, 101.0] |\n" * 1 + (
        "| 6 | 100.0 [99.0, 101.0] |\n"
    )
    spec = json.loads(out.with_suffix(".spec.json").read_text())
    assert spec == {"study": NAME, "sides": [4, 6], "throws": 30, "loaded": True}
    again = core("study", "--spec", out.with_suffix(".spec.json"), "--json").json()["rows"]
    assert again == rows, "its specification repeats it"


def test_help_tells_it_and_each_setting(core: Any) -> None:
    assert "how often a six comes" in core("study", "--help").out
    told = core("study", NAME, "--help").out
    assert "faces of the die (default: 6)" in told and "--throws" in told


def test_values_outside_their_range_are_refused(core: Any, tmp_path: Path) -> None:
    given = ["study", NAME, "--out", tmp_path / "t.json"]
    assert "--sides: must lie in [2, 4294967295], got '1'" in core(*given, "--sides", 1).refusal()
    assert "unrecognized arguments: --sids" in core(*given, "--sids", 3).refusal()
