"""Pages and figures say when, by which version and on what machine their figures were measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from visiting import open_page

from leakscope.core.figures.style import hover_line
from leakscope.core.figures.tradeoff import tradeoff_figure
from leakscope.core.results import Interval, Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import rows_from_json, rows_to_json
from leakscope.core.studies.attributes import curves as attribute_curves
from leakscope.core.studies.inversion import more_texts, representation_summary
from leakscope.core.studies.inversion.representation_summary import (
    FILES,
    MORE_TEXTS,
    load_representations,
)
from leakscope.core.studies.tradeoff import summary as tradeoff_summary
from leakscope.core.studies.tradeoff.summary import load_tradeoff
from leakscope.dashboard import cache
from scripts.more_texts import main as collect_more_texts

ORIGIN = Provenance(
    "2026-01-02T03:04:05+00:00",
    {"leakscope": "9.8.7"},
    "0123456789ab",
    True,
    {"chip": "a <chip>", "n_cpus": 2, "device": "cpu"},
)
SAID = "Leakscope 9.8.7 (commit 01234567, changed)"
UNKNOWN = "before date, version and machine were recorded"


def with_origin(
    shipped: Path, folder: Path, name: str, study: str, origin: Provenance | None = ORIGIN
) -> Path:
    """Write a file that ships with another origin, or with none."""
    rows = rows_from_json(json.loads(shipped.read_text()))
    told = [replace(row, provenance=None if row.error else origin) for row in rows]
    (folder / name).write_text(json.dumps(rows_to_json(study, told)))
    return folder / name


@pytest.fixture
def tradeoff(tmp_path: Path) -> Path:
    return with_origin(tradeoff_summary.SHIPPED / "tradeoff.json", tmp_path, "t.json", "tradeoff")


def hovers(figure: Any) -> str:
    return "".join(str(each) for trace in figure.data for each in (trace.customdata or []))


def test_a_pointer_on_the_trade_off_tells_where_a_point_comes_from(tradeoff: Path) -> None:
    found = load_tradeoff(tradeoff)
    assert all(point.provenances for point in found.points)
    told = hovers(tradeoff_figure(found, found.tasks[0]))
    assert told.count("2026-01-02") == len(found.points) and "9.8.7" in told
    assert "<chip>" not in told, "a name is no markup"
    plain = load_tradeoff(tradeoff_summary.SHIPPED / "tradeoff.json")
    assert found.facts == plain.facts and len(found.points) == len(plain.points)


def test_a_point_that_tells_nothing_adds_no_line() -> None:
    assert hover_line([]) == hover_line([None]) == ""


def of_representations(folder: Path, origin: Provenance | None = ORIGIN) -> Path:
    folder.mkdir(exist_ok=True)
    for study, name in {**FILES, more_texts.STUDY: MORE_TEXTS}.items():
        with_origin(representation_summary.SHIPPED / name, folder, name, study, origin)
    return folder


@pytest.fixture
def news(tmp_path: Path) -> Path:
    return of_representations(tmp_path)


def test_what_is_collected_of_the_study_of_attacks_keeps_its_origin(tmp_path: Path) -> None:
    row = Row(
        {"attack": "mlc", "auxiliary": "cross", "seed": 0},
        {"token_set_f1": Score(40.0, Interval(30.0, 50.0), 9, 5.0)},
        {"n_auxiliary": None, "texts": "news", "n": 9},
        1.0,
        provenance=ORIGIN,
    )
    (tmp_path / "a.json").write_text(json.dumps(rows_to_json("attacks", [row])))
    collect_more_texts(["--results", str(tmp_path / "a.json"), "--out", str(tmp_path / "m.json")])
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["from"] == "a.json" and written["study"] == more_texts.STUDY
    assert written["rows"][0]["cell_begun"] == ORIGIN.begun
    assert written["provenances"][0]["commit"] == ORIGIN.commit


def told_on(app: AppTest, name: str) -> str:
    page = open_page(app, name)
    return " ".join(part.value for part in [*page.caption, *page.markdown]).replace("\\", "")


@pytest.mark.slow
def test_the_trade_off_page_says_it(
    small_app: AppTest, tradeoff: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert UNKNOWN not in told_on(small_app, "tradeoff"), "what ships tells it"
    shipped = tradeoff_summary.SHIPPED / "tradeoff.json"
    untold = load_tradeoff(with_origin(shipped, tmp_path, "untold.json", "tradeoff", None))
    monkeypatch.setattr(tradeoff_summary, "shipped_tradeoff", lambda: untold)
    assert UNKNOWN in told_on(small_app, "tradeoff")
    monkeypatch.setattr(tradeoff_summary, "shipped_tradeoff", lambda: load_tradeoff(tradeoff))
    told = told_on(small_app, "tradeoff")
    assert SAID in told and "2026-01-02" in told and UNKNOWN not in told


@pytest.mark.parametrize("page", ["attributes", "representations", "names"])
def test_other_pages_of_measured_rows_say_it(
    small_app: AppTest, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = cache.name_rows()
    attributes = attribute_curves.load_shipped()
    for origin, said in ((None, UNKNOWN), (ORIGIN, SAID)):
        rows = [replace(row, provenance=origin) for row in shipped]
        found = load_representations(of_representations(tmp_path / said[:8], origin))
        authors = [replace(row, provenance=origin) for row in attributes]
        monkeypatch.setattr(cache, "attribute_rows", lambda told=authors: told)
        monkeypatch.setattr(cache, "name_rows", lambda told=rows: told)
        monkeypatch.setattr(cache, "representations", lambda told=found: told)
        assert said in told_on(small_app, page)
