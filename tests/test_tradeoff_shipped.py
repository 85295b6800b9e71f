"""What is claimed of the trade-off that ships, held against the files that it was measured into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.corpora.near_duplicates import THRESHOLD
from core.studies.rows import Row
from core.studies.tables import read_rows
from core.studies.tradeoff_choice import choose, keeps, unproven
from core.studies.tradeoff_files import load_rows, load_tradeoff, shipped_tradeoff
from core.studies.tradeoff_point import Point
from core.studies.tradeoff_summary import Tradeoff, summarise, use_said

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "assets" / "tradeoff" / "minilm.json"
RESULTS = ROOT / "docs" / "results"

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


def test_it_says_on_what_usefulness_was_tested(shipped: Tradeoff, rows: list[Row]) -> None:
    assert {row["task_near"] for row in rows if row["part"] == "use"} == {THRESHOLD}
    told = "No text is tested on that nearly repeats a training text."
    assert told in use_said(shipped.facts)
    assert told in (RESULTS / "tradeoff.md").read_text(encoding="utf-8")


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
    rows = load_rows(SHIPPED.with_name("minilm-all.json"))
    assert names <= {row["defence"] for row in rows}
    took = [row["cell_seconds"] for row in rows if row["defence"] in names]
    assert sum(took) / N_CORES < MOST_HOURS * 3600


def test_what_releases_nothing_of_its_own_takes_as_long_as_what_it_is_behind() -> None:
    found = summarise(load_rows(SHIPPED.with_name("minilm-all.json")))
    took = {point.defence: point.milliseconds for point in found.points}
    assert took["private_head"] == took["none"] and took["constrained"] == took["text_to_text"]
    assert all(each is not None and each > 0 for each in took.values())


def test_all_that_is_of_one_kind_was_measured_alike(rows: list[Row]) -> None:
    """No row is of an earlier attacker, task or defence than its neighbours."""
    versions: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        for what, version in (row.get("versions") or {}).items():
            versions.setdefault((row["part"], what), set()).add(str(version))
    assert versions and {key: v for key, v in versions.items() if len(v) > 1} == {}


def test_what_the_results_say_of_tasks_is_so(rows: list[Row]) -> None:
    """The words of docs/results, whose figures alone are written from files."""
    shipped = summarise([*rows, *load_rows(SHIPPED.with_name("minilm-banking.json"))])
    words = " ".join((RESULTS / "README.md").read_text(encoding="utf-8").split())
    chosen = {task: choose(shipped, task) for task in shipped.tasks}
    helpless = [task for task, choice in chosen.items() if not choice.helps]
    told = f"no defence is shown to help on three of the ten tasks ({', '.join(helpless[:2])} and "
    assert len(helpless) == 3 and len(chosen) == 10 and f"{told}{helpless[2]}; rounding to" in words
    maybe = {p.label for task in helpless if (p := unproven(shipped, task)) is not None}
    assert maybe == {"to 1 decimal", "to 192 dimensions"}
    above = [task for task, choice in chosen.items()
             if choice.helps and choice.shown.leakage.value > 50]  # fmt: skip
    assert f"on three more ({above[0]}, {above[1]} and {above[2]}) the strongest" in words
    assert len(above) == 3
    banking = chosen["BANKING77-search"].shown
    assert (banking.defence, banking.label) == ("truncation", "to 96 dimensions")
    subj = chosen["SUBJ"]
    assert subj.measured is not None and subj.measured.defence == "binary"
    assert subj.promising is not None and subj.promising.label == "η 800"
    for task in ("STS-b", "QQP"):
        alike = [chosen[task].shown, *chosen[task].alike]
        assert {(p.defence, p.label) for p in alike} == {
            ("truncation", "to 48 dimensions"), ("random_projection", "to 48 dimensions")
        }  # fmt: skip
        least = chosen[task].promising
        assert least is not None and (least.defence, least.label) == (
            "sequence_representation", "η 400",
        )  # fmt: skip
    for point in shipped.points:
        if point.defence in ("text_to_text", "token_representation") and point.leaks:
            kept = [t for t in point.utility if keeps(point, shipped.undefended, t, 0.8)]
            assert not kept or point.leakage.value > shipped.undefended.leakage.value, point.label


def test_support_messages_were_measured_on_a_sample_and_the_page_says_so() -> None:
    found = shipped_tradeoff("minilm")
    told = "BANKING77, BANKING77-search: 1,540 training and 770 test texts, drawn at random"
    assert told in use_said(found.facts)
    assert "BANKING77-search: the nearest training text has the label of the test text" in use_said(
        found.facts
    )
    rows = load_rows(SHIPPED.with_name("minilm-banking.json"))
    assert {row["part"] for row in rows} == {"use"} and {row["seed"] for row in rows} == {0, 1, 2}
    for name in ("BANKING77", "BANKING77-search"):
        scores = [p.utility[name] for p in found.points if name in p.utility]
        assert len(scores) == len(rows) / 3 and {s.n_seeds for s in scores} == {3}
    base = found.undefended.utility["BANKING77-search"]
    assert base.value > 70 > base.chance, "the nearest message mostly has the same intent"
