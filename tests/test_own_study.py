"""Rows and encoders of a visitor's own, beside what ships."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from tradeoff_rows import write_rows
from visiting import finish_job

from leakscope.core.errors import ArtifactError
from leakscope.core.findings.representations import own_encoder, own_encoder_title, own_title
from leakscope.core.findings.tradeoff import describe_point
from leakscope.core.results import Interval, Score
from leakscope.core.studies.inversion.own_encoder import OwnLeak, article_search, measure_encoders
from leakscope.core.studies.inversion.representation_order import judge_own
from leakscope.core.studies.inversion.representation_summary import (
    FILES,
    SHIPPED,
    YOURS,
    Leak,
    Point,
    load_representations,
    with_uploaded,
)
from leakscope.core.studies.tradeoff.choice import choose
from leakscope.core.studies.tradeoff.summary import SHIPPED as TRADEOFF
from leakscope.core.studies.tradeoff.summary import load_tradeoff, parse_tradeoff
from leakscope.core.tasks.outcomes import Hits
from leakscope.dashboard.representations import own

ROWS = (TRADEOFF / "tradeoff.json").read_bytes()


def of(study: str) -> dict:
    return json.loads((SHIPPED / FILES[study]).read_text("utf-8"))


def test_rows_of_ones_own_stand_beside_those_that_ship_under_their_own_name() -> None:
    found = load_representations()
    both = with_uploaded(found, [of("encoders"), of("classification")])
    sent = {row["encoder"] for row in of("encoders")["rows"]}
    assert len(sent) > 4 and set(both.encoders) == {*found.encoders, *(f"{YOURS}{n}" for n in sent)}
    ship, own = found.leaks["minilm", "msp", "cross"], both.leaks[f"{YOURS}minilm", "msp", "cross"]
    assert own.f1 == ship.f1 and own.encoder == f"{YOURS}minilm"
    assert both.useful(f"{YOURS}minilm", "cross", "text") == found.useful("minilm", "cross", "text")
    assert both.leaks["minilm", "msp", "cross"] == ship, "what ships stays as it is"


@pytest.mark.parametrize(
    "file",
    [
        {},
        {"study": "names", "rows": []},
        {"study": "classification", "rows": 3},
        {"study": "representations", "rows": [{"encoder": "../x", "attack": "a", "domain": "in"}]},
    ],
    ids=str,
)
def test_files_of_something_else_are_refused(file: dict) -> None:
    with pytest.raises(ArtifactError):
        with_uploaded(load_representations(), [file])


def test_a_trade_off_of_ones_own_is_read_as_one_that_ships() -> None:
    shipped = load_tradeoff(TRADEOFF / "tradeoff.json")
    assert parse_tradeoff(json.loads(ROWS), "a").points == shipped.points
    for wrong in ({}, {"rows": []}, {"rows": "x"}, {"rows": [{"defence": "none"}]}):
        with pytest.raises(ArtifactError, match="the file is not a result"):
            parse_tradeoff(wrong, "the file")


@pytest.mark.slow
def test_any_encoder_is_measured_on_texts_that_ship(tiny_bert: Path) -> None:
    told: list[str] = []
    names = (f"mlm:{tiny_bert}",)
    (found,) = measure_encoders(names, 20, 200, lambda done, message: told.append(message))
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


def quick_leak(name: str, f1: float, found: Any = (False,) * 4) -> OwnLeak:
    """Return what a quick attack recovers from an encoder, with an interval of two points."""
    score = Score(f1, Interval(f1 - 2, f1 + 2), 300, 3.0)
    hits = Hits(np.array(found), 100 / 300)
    return OwnLeak(encoder=name, dimension=32, f1=score, recall=f1, found=hits)


def test_what_these_texts_do_not_bear_out_is_told() -> None:
    one = quick_leak("mine", 20.0, np.arange(300) < 200)
    for n, said in ((201, "the difference is not significant"), (100, "difference is significant")):
        assert said in own_encoder((one, quick_leak("minilm", 30.0, np.arange(300) < n))).body


def test_a_measured_encoder_has_a_verdict_beside_the_bundled_one() -> None:
    bundled = quick_leak("minilm", 20)
    assert own_encoder_title(quick_leak("mine", 30), bundled) == "mine leaks more than minilm"
    assert own_encoder_title(quick_leak("mine", 10), bundled) == "mine leaks less than minilm"
    alike = own_encoder_title(quick_leak("mine", 21), bundled)
    assert alike == "mine does not leak significantly more or less than minilm"
    assert "to a quick attack" in own_encoder_title(bundled, bundled)


def point(name: str, leak: float, useful: float | None) -> Point:
    """Return an encoder under one attack, with intervals of two points to either side."""
    f1 = Score(leak, Interval(leak - 2, leak + 2), 100, 4.0)
    own = Leak(
        encoder=name,
        attack="msp",
        domain="cross",
        f1=f1,
        n_fitted_on=9,
        precision=1.0,
        weighted_f1=1.0,
        own_vocabulary_f1=1.0,
        recall=float(leak),
    )
    use = None if useful is None else Score(useful, Interval(useful - 2, useful + 2), 50)
    return Point(own, use)


@pytest.mark.parametrize(
    ("leak", "useful", "rival", "title"),
    [
        (50, 80, "minilm", "leaks more than"),
        (30, 80, "minilm", "leaks less than every other encoder that is as useful"),
        (41, 80, "minilm", "does not leak significantly more or less than"),
        (50, 70, "tfidf", "leaks more than"),
        (50, 99, None, "is the most useful encoder shown"),
        (50, None, None, "leaks about 5 of 10 words"),
    ],
)
def test_an_encoder_of_ones_own_has_a_verdict_at_equal_usefulness(
    leak: float, useful: float | None, rival: str | None, title: str
) -> None:
    shipped = [point("minilm", 40, 80), point("tfidf", 20, 70), point("hashing", 60, 80)]
    (found,) = judge_own([*shipped, point(f"{YOURS}mine", leak, useful)])
    assert (found.rival and found.rival.leak.encoder) == rival
    assert own_title(found).replace("\\", "").startswith(f"{YOURS}mine {title}")
    assert judge_own(shipped) == []
    (alone,) = judge_own([point(f"{YOURS}mine", leak, useful)])
    assert " of 10 words" in own_title(alone), "nothing to compare it with"


def on(app: AppTest, page: str) -> AppTest:
    app.run()
    return app.switch_page(f"../pages/{page}.py").run()


def test_after_an_upload_the_trade_off_is_about_the_visitors_rows(
    small_app: AppTest, tmp_path: Path
) -> None:
    page = on(small_app, "tradeoff")
    beside = "Shipped results for comparison"
    assert not page.title[0].value.startswith("In your study")
    assert not any(beside in h.value for h in page.header)
    page.file_uploader(key="own-tradeoff").upload("x.json", b"[1]", "application/json").run()
    assert not page.exception and page.error
    own = write_rows(tmp_path).read_bytes()
    page.file_uploader(key="own-tradeoff").upload("mine.json", own, "application/json").run()
    assert not page.exception and not page.error
    assert any(beside in h.value for h in page.header)
    found = parse_tradeoff(json.loads(own), "mine.json")
    choice = choose(found, "SST-2")
    assert choice.best is not None and choice.helps
    title = (
        f"In your study, for film reviews, whole sentences: liked or not (SST-2), "
        f"“{describe_point(choice.best)}” leaks least of the settings that keep 90 % of the "
        "utility"
    )
    assert page.title[0].value.replace("\\", "").startswith(title)
    assert choice.best.utility["SST-2"].in_text(0, is_bold=True) in " ".join(
        m.value for m in page.markdown
    )
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    drawn = [x for t in figure["data"] if t.get("mode") == "lines+markers" for x in t["x"]]
    assert sorted(drawn) == sorted(p.utility["SST-2"].value for p in found.points)
    assert list(page.dataframe[2].value["useful"]) == [
        p.utility["SST-2"].value for p in found.points
    ]
    page.session_state["_story_requested"] = ("tradeoff", False)
    page.run()
    (placed,) = page.session_state["_story_pins"]
    slide = placed.pin.slide
    assert slide.title.startswith("In your study, ") and not placed.pin.is_live
    assert any(choice.best.utility["SST-2"].format(0) in row for row in slide.table.rows)


def test_representations_show_rows_of_ones_own(small_app: AppTest) -> None:
    page = on(small_app, "representations")
    own = (SHIPPED / FILES["encoders"]).read_bytes()
    page.file_uploader(key="own-representations").upload("mine.json", own, "application/json").run()
    assert not page.exception and not page.error
    assert f"{YOURS}minilm" in page.multiselect(key="rep_encoder").value
    title = page.title[0].value.replace("\\", "")
    assert title.startswith(YOURS) and " leaks " in title and "of 10 words" in title, title
    assert "Its utility is not in your file" in " ".join(m.value for m in page.markdown)
    page.text_input(key="rep_own_encoder").set_value("mlm:nowhere").run()
    assert not page.exception and page.button(key="measure-own").label == "Measure this encoder"


@pytest.mark.slow
def test_an_encoder_of_ones_own_is_measured_beside_the_bundled_one_when_asked(
    small_app: AppTest, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "N_TARGETS", 20)
    monkeypatch.setattr(own, "N_AUXILIARY", 100)
    page, name = on(small_app, "representations"), f"mlm:{tiny_bert}"
    page.text_input(key="rep_own_encoder").set_value(name).run()
    assert not finish_job(page.button(key="measure-own").click().run()).error
    (table,) = [t.value.to_dict("list") for t in page.dataframe if "Dimension" in t.value]
    assert "tiny" in table["Encoder"][0] or Path(name).name in table["Encoder"][0]
    assert table["Encoder"][1] == "minilm" and table["Dimension"] == ["32", "384"]
    assert all(" of 10 words (F1 " in leaks for leaks in table["Leaks"])
    assert all("of 100 articles (95 % CI " in found for found in table["Articles found"])
    title = page.title[0].value.replace("\\", "")
    assert title.startswith(name) and "than minilm" in title
    assert "The word probe recovers" in " ".join(m.value for m in page.markdown)
