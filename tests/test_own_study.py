"""Rows and encoders of a visitor's own, beside what ships."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.errors import ArtifactError
from core.results import Interval, Score
from core.studies.own_encoder import OwnLeak, article_search, measure_encoders
from core.studies.representation_summary import (
    FILES,
    SHIPPED,
    YOURS,
    beside_own,
    load_representations,
)
from core.studies.tradeoff_files import SHIPPED as TRADEOFF
from core.studies.tradeoff_files import load_tradeoff, tradeoff_of
from core.tasks.outcomes import Hits
from dashboard.representations.own import _told_apart

ROWS = (TRADEOFF / "minilm.json").read_bytes()


def of(study: str) -> dict:
    return json.loads((SHIPPED / FILES[study]).read_text("utf-8"))


def test_rows_of_ones_own_stand_beside_those_that_ship_under_their_own_name() -> None:
    found = load_representations()
    both = beside_own(found, [of("encoders"), of("classification")])
    assert set(both.encoders) == {*found.encoders, *(f"{YOURS}{n}" for n in found.encoders)}
    ship, own = found.leaks["minilm", "msp", "cross"], both.leaks[f"{YOURS}minilm", "msp", "cross"]
    assert own.f1 == ship.f1 and own.encoder == f"{YOURS}minilm"
    assert both.useful(f"{YOURS}minilm", "cross", "text") == found.useful("minilm", "cross", "text")
    assert both.leaks["minilm", "msp", "cross"] == ship, "what ships stays as it is"


@pytest.mark.parametrize(
    "file",
    [{}, {"study": "names", "rows": []}, {"study": "classification", "rows": 3},
     {"study": "representations", "rows": [{"encoder": "../x", "attack": "a", "domain": "in"}]}],
    ids=str,
)  # fmt: skip
def test_files_of_something_else_are_refused(file: dict) -> None:
    with pytest.raises(ArtifactError):
        beside_own(load_representations(), [file])


def test_a_trade_off_of_ones_own_is_read_as_one_that_ships() -> None:
    shipped = load_tradeoff(TRADEOFF / "minilm.json")
    assert tradeoff_of(json.loads(ROWS), "a").points == shipped.points
    for wrong in ({}, {"rows": []}, {"rows": "x"}, {"rows": [{"defence": "none"}]}):
        with pytest.raises(ArtifactError, match="the file is not the result"):
            tradeoff_of(wrong, "the file")


def test_any_encoder_is_measured_on_texts_that_ship(tiny_bert: Path) -> None:
    told: list[str] = []
    names = (f"mlm:{tiny_bert}",)
    (found,) = measure_encoders(names, 20, lambda done, message: told.append(message))
    assert found.encoder == names[0] and found.dimension == 32 and found.f1.n <= 20
    assert 0 <= found.f1.value <= 100 and 0 <= found.recall <= 100 and found.f1.has_interval
    assert any("1 of 1" in message for message in told)
    useful = found.found.score()
    assert useful.n == len(article_search().queries) and useful.chance == 100 / useful.n


def test_articles_are_asked_for_by_their_first_sentence_alone() -> None:
    searched = article_search()
    assert len(searched.queries) > 250
    for query, rest in zip(searched.queries, searched.stored, strict=True):
        assert query and rest and query not in rest


def test_what_these_texts_do_not_bear_out_is_said() -> None:
    def measured(f1: float, n_found: int) -> OwnLeak:
        score = Score(f1, Interval(f1 - 2, f1 + 2), 300)
        return OwnLeak(encoder="e", dimension=8, f1=score, recall=1.0,
                       found=Hits(np.arange(300) < n_found, 100 / 300))  # fmt: skip

    one = measured(20.0, 200)
    said = {f1: _told_apart(one, measured(f1, n)) for f1, n in ((21.0, 201), (30.0, 100))}
    assert said[21.0].endswith("the two are not told apart by what leaks or what is found.")
    assert said[30.0].endswith("the two are told apart by what leaks and what is found.")
    assert "leaks, not told apart by what is found" in _told_apart(one, measured(30.0, 201))


def on(app: AppTest, page: str) -> AppTest:
    app.run()
    return app.switch_page(f"../pages/{page}.py").run()


def test_the_trade_off_shows_rows_of_ones_own_and_refuses_others(small_app: AppTest) -> None:
    page = on(small_app, "tradeoff")
    assert not any("Beside them" in h.value for h in page.header)
    page.file_uploader(key="own-tradeoff").upload("mine.json", ROWS, "application/json").run()
    assert not page.exception and not page.error
    assert any("Beside them" in h.value for h in page.header)
    page.file_uploader(key="own-tradeoff").upload("x.json", b"[1]", "application/json").run()
    assert not page.exception and page.error


def test_representations_show_rows_of_ones_own(small_app: AppTest) -> None:
    page = on(small_app, "representations")
    own = (SHIPPED / FILES["encoders"]).read_bytes()
    page.file_uploader(key="own-representations").upload("mine.json", own, "application/json").run()
    assert not page.exception and not page.error
    assert f"{YOURS}minilm" in page.multiselect(key="rep_encoder").value
    page.text_input(key="rep_own_encoder").set_value("mlm:nowhere").run()
    assert not page.exception and page.button(key="measure-own").label == "Measure this encoder"


def test_an_encoder_of_ones_own_is_measured_beside_the_bundled_one_when_asked(
    small_app: AppTest, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.representations.own.N_TARGETS", 20)
    page, name = on(small_app, "representations"), f"mlm:{tiny_bert}"
    page.text_input(key="rep_own_encoder").set_value(name).run()
    page.button(key="measure-own").click().run()
    end = time.monotonic() + 300
    told: list[str] = []
    while not told and not page.error and time.monotonic() < end:
        time.sleep(0.5)
        page.run()
        told = [m.value for m in page.markdown if "numbers a text" in m.value]
    assert not page.exception and not page.error
    own, bundled = told[0].splitlines()
    assert "tiny" in own or Path(name).name in own.replace("\\", "")
    assert "(32 numbers a text): the attacker reads **" in own and " of 10 words** (F1 " in own
    assert "minilm" in bundled and "(384 numbers a text)" in bundled
    assert all("of 100 articles, n = " in line for line in (own, bundled))
    assert any("told apart by what" in c.value for c in page.caption)
