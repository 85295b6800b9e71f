"""What is claimed of the trade-off that ships, held against the files that it was measured into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leakscope.core.results.rows import Row
from leakscope.core.results.tables import read_rows
from leakscope.core.studies.tradeoff.choice import choose, keeps_share, unproven
from leakscope.core.studies.tradeoff.summary import (
    Point,
    Tradeoff,
    load_tradeoff,
    summarise,
)

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "results" / "tradeoff.json"
RESULTS = ROOT / "results"

N_CORES = 2
MOST_HOURS = 5
MOST_POINTS = 2
"""How far an attacker may lie behind the one that ships, or behind one with more texts."""


def of(found: Tradeoff, like: Point) -> Point:
    (point,) = [p for p in found.points if (p.defence, p.settings) == (like.defence, like.settings)]
    return point


@pytest.fixture(scope="module")
def shipped() -> Tradeoff:
    return load_tradeoff(SHIPPED)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(SHIPPED, "tradeoff")


def test_without_a_defence_it_reads_what_the_strongest_that_ships_reads(shipped: Tradeoff) -> None:
    beside = load_tradeoff(RESULTS / "tradeoff-undefended.json").undefended
    assert beside.attacker == "shipped", "of the same texts"
    assert shipped.undefended.leakage.n == beside.leakage.n
    assert shipped.undefended.leakage.value >= beside.leakage.value - MOST_POINTS


def test_more_texts_would_give_the_attacker_little(shipped: Tradeoff) -> None:
    more = summarise(read_rows(RESULTS / "tradeoff-learning.json", "tradeoff"))
    assert len(more.points) == 2 and more.facts["n_auxiliary"] == 50_000
    assert shipped.facts["n_auxiliary"] == 20_000
    for point in more.points:
        assert point.leakage.value <= of(shipped, point).leakage.value + MOST_POINTS, point.label


def test_the_whole_table_is_measured_within_five_hours(rows: list[Row]) -> None:
    took = [row["cell_seconds"] for row in rows]
    assert all(seconds > 0 for seconds in took)
    assert sum(took) / N_CORES < MOST_HOURS * 3600


def test_the_preset_of_all_defences_is_measured_within_five_hours() -> None:
    preset = ROOT / "docs" / "presets" / "tradeoff-all.spec.json"
    spec = json.loads(preset.read_text(encoding="utf-8"))
    stages = ([stage.partition(":")[0] for stage in each.split("+")] for each in spec["defences"])
    names = {"+".join(each) for each in stages}
    rows = read_rows(SHIPPED.with_name("tradeoff-all.json"), "tradeoff")
    assert names <= {row["defence"] for row in rows}
    took = [row["cell_seconds"] for row in rows if row["defence"] in names]
    assert sum(took) / N_CORES < MOST_HOURS * 3600


def test_all_that_is_of_one_kind_was_measured_alike(rows: list[Row]) -> None:
    """No row is of an earlier attacker, task or defence than its neighbours."""
    versions: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        for what, version in (row.get("versions") or {}).items():
            versions.setdefault((row["part"], what), set()).add(str(version))
    assert versions and {key: v for key, v in versions.items() if len(v) > 1} == {}


def test_what_the_results_say_of_tasks_is_so(rows: list[Row]) -> None:
    """The words of the page, whose figures alone are written from files."""
    shipped = summarise([*rows, *read_rows(SHIPPED.with_name("tradeoff-banking.json"), "tradeoff")])
    words = " ".join(
        (ROOT / "docs" / "results" / "tradeoff.md").read_text(encoding="utf-8").split()
    )
    chosen = {task: choose(shipped, task) for task in shipped.tasks}
    helpless = [task for task, choice in chosen.items() if not choice.helps]
    told = f"No defence is shown to help on three of the ten tasks ({', '.join(helpless[:2])} and "
    assert (
        len(helpless) == 3 and len(chosen) == 10 and f"{told}{helpless[2]}). Rounding to" in words
    )
    maybe = {p.label for task in helpless if (p := unproven(shipped, task)) is not None}
    assert maybe == {"to 1 decimal", "to 192 dimensions"}
    above = [
        task for task, choice in chosen.items() if choice.helps and choice.shown.leakage.value > 50
    ]
    assert f"On three more ({above[0]}, {above[1]} and {above[2]}), the strongest" in words
    assert len(above) == 3
    banking = chosen["BANKING77-search"].shown
    assert (banking.defence, banking.label) == ("truncation", "to 96 dimensions")
    subj = chosen["SUBJ"]
    assert subj.measured is not None and subj.measured.defence == "binary"
    assert subj.promising is not None and subj.promising.label == "η 800"
    for task in ("STS-b", "QQP"):
        alike = [chosen[task].shown, *chosen[task].alike]
        assert {(p.defence, p.label) for p in alike} == {
            ("truncation", "to 48 dimensions"),
            ("random_projection", "to 48 dimensions"),
        }
        least = chosen[task].promising
        assert least is not None and (least.defence, least.label) == (
            "sequence_representation",
            "η 400",
        )
    for point in shipped.points:
        if point.defence in ("text_to_text", "token_representation") and point.leaks:
            kept = [t for t in point.utility if keeps_share(point, shipped.undefended, t, 0.8)]
            assert not kept or point.leakage.value > shipped.undefended.leakage.value, point.label
