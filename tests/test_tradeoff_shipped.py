"""What is claimed of the trade-off that ships, held against the files that it was measured into."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.studies.rows import Row
from core.studies.tables import read_rows
from core.studies.tradeoff_point import Point
from core.studies.tradeoff_summary import Tradeoff, load_tradeoff, summarise

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


def test_all_that_is_of_one_kind_was_measured_alike(rows: list[Row]) -> None:
    """No row is of an earlier attacker, task or defence than its neighbours."""
    versions: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        for what, version in (row.get("versions") or {}).items():
            versions.setdefault((row["part"], what), set()).add(str(version))
    assert versions and {key: v for key, v in versions.items() if len(v) > 1} == {}
