"""Pages and figures say when, by which version and on what machine their figures were measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.figures.attributes import accuracy_figure
from core.figures.representations import representations_figure
from core.figures.style import hover_line
from core.figures.tradeoff import tradeoff_figure
from core.results import Interval, Score
from core.studies import attribute_curves, more_texts, representation_summary, tradeoff_files
from core.studies.provenance import EARLIER, Provenance
from core.studies.representation_summary import FILES, MORE_TEXTS, load_representations
from core.studies.rows import Row
from core.studies.tables import rows_of, table_of
from core.studies.tradeoff_files import load_tradeoff
from dashboard import cache

ORIGIN = Provenance("2026-01-02T03:04:05+00:00", {"leakscope": "9.8.7"}, "0123456789ab", True,
                    {"chip": "a <chip>", "n_cpus": 2, "device": "cpu"})  # fmt: skip
SAID = "Leakscope 9.8.7 (commit 01234567, changed)"
UNKNOWN = "measured before it was recorded when"


def with_origin(
    shipped: Path, folder: Path, name: str, study: str, origin: Provenance | None = ORIGIN
) -> Path:
    """Write a file that ships as the study writes it today, or as a version did that told none."""
    rows = tradeoff_files.load_rows(shipped) if study == "tradeoff" else None
    rows = rows or rows_of(json.loads(shipped.read_text()))
    told = [replace(row, provenance=None if row.error else origin) for row in rows]
    (folder / name).write_text(json.dumps(table_of(study, told)))
    return folder / name


@pytest.fixture
def tradeoff(tmp_path: Path) -> Path:
    return with_origin(tradeoff_files.SHIPPED / "minilm.json", tmp_path, "t.json", "tradeoff")


def hovers(figure: Any) -> str:
    return "".join(str(each) for trace in figure.data for each in (trace.customdata or []))


def test_a_pointer_on_the_trade_off_tells_where_a_point_comes_from(tradeoff: Path) -> None:
    found = load_tradeoff(tradeoff)
    assert all(point.provenances for point in found.points)
    told = hovers(tradeoff_figure(found, found.tasks[0]))
    assert told.count("2026-01-02") == len(found.points) and "9.8.7" in told
    assert "<chip>" not in told, "a name is no markup"
    plain = load_tradeoff(tradeoff_files.SHIPPED / "minilm.json")
    assert found.facts == plain.facts and len(found.points) == len(plain.points)


def test_a_point_that_tells_nothing_adds_no_line() -> None:
    assert hover_line([]) == hover_line([None]) == ""
    assert hover_line([EARLIER]).startswith("<br>measured by an earlier version")


def of_representations(folder: Path, origin: Provenance | None = ORIGIN) -> Path:
    folder.mkdir(exist_ok=True)
    for study, name in {**FILES, more_texts.STUDY: MORE_TEXTS}.items():
        with_origin(representation_summary.SHIPPED / name, folder, name, study, origin)
    return folder


@pytest.fixture
def news(tmp_path: Path) -> Path:
    return of_representations(tmp_path)


def test_a_pointer_on_representations_tells_where_a_point_comes_from(news: Path) -> None:
    found = load_representations(news)
    points = found.points(found.encoders, found.attacks, "in", "titles")
    told = hovers(representations_figure(points))
    n_shown = sum(point.useful is not None for point in points)
    assert told.count("2026-01-02") == n_shown > 3
    assert all(score.provenances == (ORIGIN,) for score in found.more_texts)


def test_what_is_collected_of_the_study_of_attacks_keeps_its_origin(tmp_path: Path) -> None:
    row = Row({"attack": "mlc", "auxiliary": "cross", "seed": 0},
              {"token_set_f1": Score(40.0, Interval(30.0, 50.0), 9, 5.0)},
              {"n_auxiliary": None, "texts": "news", "n": 9}, 1.0, provenance=ORIGIN)  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(table_of("attacks", [row])))
    more_texts.main(["--results", str(tmp_path / "a.json"), "--out", str(tmp_path / "m.json")])
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["from"] == "a.json" and written["study"] == more_texts.STUDY
    assert written["rows"][0]["cell_begun"] == ORIGIN.begun
    assert written["provenances"][0]["commit"] == ORIGIN.commit


def captions(app: AppTest, page: str) -> str:
    app.run()
    app.switch_page(f"../pages/{page}.py").run()
    assert not app.exception
    return " ".join(part.value for part in app.caption).replace("\\", "")


def test_the_trade_off_page_says_it(
    small_app: AppTest, tradeoff: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert UNKNOWN not in captions(small_app, "tradeoff"), "what ships tells it"
    shipped = tradeoff_files.SHIPPED / "minilm.json"
    untold = load_tradeoff(with_origin(shipped, tmp_path, "untold.json", "tradeoff", None))
    monkeypatch.setattr(cache, "tradeoff", lambda on: untold)
    assert UNKNOWN in captions(small_app, "tradeoff")
    monkeypatch.setattr(cache, "tradeoff", lambda on: load_tradeoff(tradeoff))
    told = captions(small_app, "tradeoff")
    assert SAID in told and "2026-01-02" in told and UNKNOWN not in told


def test_a_pointer_on_attributes_tells_where_a_point_comes_from() -> None:
    rows = [replace(row, provenance=ORIGIN) for row in attribute_curves.load_shipped()]
    source = attribute_curves.offered(rows)[0]
    labels, sizes = attribute_curves.views_of(rows, source)
    view = attribute_curves.View(source, labels[-1], sizes[-1])
    found = attribute_curves.curves(rows, view, "n_per_label")
    told = hovers(accuracy_figure(found, "n_per_label", 1))
    assert told.count("2026-01-02") == sum(len(curve.sizes) for curve in found) > 3


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
        assert said in captions(small_app, page)
