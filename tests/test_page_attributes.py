from __future__ import annotations

import csv
import io
import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, open_page

from leakscope.core.findings.attributes import NOT_MEASURED, authors_at, first_view
from leakscope.core.findings.prose import plain
from leakscope.core.results.tables import write_rows
from leakscope.core.studies.attributes import curves as attribute_curves
from leakscope.core.studies.attributes.study import AttributeStudy, markdown
from leakscope.core.studies.registry import run_study
from leakscope.dashboard import cache
from leakscope.dashboard.attributes import views
from leakscope.dashboard.attributes.state import UPLOAD, key_of

AUTHORS = ("Ada", "=Bob", "<b>Çelik</b> $x$", "www.evil.test")
OWN = ("river", "doctor", "garden", "winter")
OTHERS = """money letter bridge market harbour teacher window engine forest station dinner summer
cousin border island ticket planet orange candle hammer rabbit lawyer tunnel silver museum castle
butter pencil desert turtle violin carpet basket ladder""".split()  # noqa: SIM905 - a list literal would take 36 lines


def lines(n: int = 36) -> list[tuple[str, str, str]]:
    """Return texts of books of six each, each author with a word of their own."""
    drawn = random.Random(0)
    return [
        (f"The {OWN[a]} and {' '.join(drawn.sample(OTHERS, 8))}.", AUTHORS[a], f"{a}/{i // 6}")
        for a in range(4)
        for i in range(n)
    ]


def as_csv(rows: list[tuple[str, str, str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([("text", "author", "book_id"), *rows])
    return out.getvalue()


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the rows of the study are looked for; there are none."""
    path = tmp_path / "shipped" / attribute_curves.FILES[0]
    path.parent.mkdir()
    monkeypatch.setattr(attribute_curves, "SHIPPED", path.parent)
    cache.attribute_rows.clear()
    yield path
    cache.attribute_rows.clear()


@pytest.fixture
def opened(small_app: AppTest, shipped: Path) -> Open:
    return partial(open_page, small_app, "attributes")


def upload(page: AppTest, content: str, name: str = "mine.csv") -> AppTest:
    page.selectbox(key=key_of("corpus")).set_value(UPLOAD).run()
    page.file_uploader(key=key_of("file")).upload(name, content.encode(), "text/csv").run()
    assert not page.exception
    return page


def inferred(page: AppTest) -> AppTest:
    """Start the job and wait for what comes of it."""
    page.button(key="attributes-infer").click().run()
    end = time.monotonic() + 150
    while not any(h.value == "Whose text is this?" for h in page.header) and not page.error:
        assert time.monotonic() < end, "the job takes too long"
        time.sleep(0.2)
        page.run()
    assert not page.exception
    return page


def told(page: AppTest) -> str:
    parts = [*page.markdown, *page.subheader, *page.caption, *page.info]
    return " ".join(part.value for part in parts).replace("\\", "")


def wrongs(page: AppTest) -> str:
    return " ".join(e.value for e in page.error).replace("\\", "")


def test_the_saved_points_are_those_of_the_figure() -> None:
    rows = attribute_curves.load_shipped()
    view = first_view(rows)
    points = views.figure_points(rows, view, "n_per_label")
    drawn = {
        (trace.x[i], round(100 * trace.y[i], 6))
        for trace in authors_at(rows, view).figure.data
        for i in range(len(trace.x or ()))
        if trace.error_y.array is not None
    }
    saved = {(point["n_per_label"], round(point["right, %"], 6)) for point in points}
    assert len(points) > 10 and saved == drawn
    assert all(p["95 % CI from"] <= p["right, %"] <= p["95 % CI to"] for p in points)


def test_without_rows_the_page_says_what_measures_them(opened: Open) -> None:
    page = opened()
    assert page.title[0].value == NOT_MEASURED.title and not page.error
    (info,) = (i.value for i in page.info)
    assert "Nothing was measured" in info and "leakscope study attributes --spec" in info
    assert not page.dataframe, "no figure that nobody measured"


@pytest.mark.slow
def test_the_finding_is_that_of_the_shipped_rows(
    opened: Open, shipped: Path, tmp_path: Path
) -> None:
    books = tmp_path / "books.csv"
    books.write_text(as_csv(lines()), encoding="utf-8")
    study = AttributeStudy(
        target=str(books),
        group_column="book_id",
        other=str(books),
        labels=(2, 4),
        sizes=(2, 6),
        attribute_attacks=("majority", "words", "linear"),
        n_targets=30,
        splits=("group",),
        seeds=(0,),
    )
    rows = run_study("attributes", study, tmp_path / "cells")
    write_rows(shipped, "attributes", rows, markdown(rows))
    page = opened()
    view = attribute_curves.View("group", 4, 6)
    one = attribute_curves.mean_at(rows, view, "linear", "top1", "minilm")
    assert one is not None
    in_title = page.title[0].value.replace("\\", "")
    assert f"the right one of 4 authors for {100 * one.value:.0f} % of the texts" in in_title
    said = told(page)
    assert "95 % CI" in said and "guessing is right for 25 %" in said
    assert (
        "With the text itself instead of its vector, the best attack (bag of words) is right for"
        in said
    )
    assert "Topic or the rest?" in said
    is_confused = "The linear probe makes one mistake most often: for" in said
    assert is_confused or "No label is mistaken" in said
    named, every = (frame.value for frame in page.dataframe[:2])
    assert list(named["Attack"]) == ["Majority class", "Bag of words", "Linear probe"]
    assert len(every) == len(rows) and not page.error
    finding = authors_at(rows, view)
    assert page.title[0].value == plain(finding.title) and finding.body in said
    assert finding.table is not None
    assert [tuple(row) for row in named.to_numpy()] == list(finding.table.rows)
    page.selectbox(key=key_of("measured_n_labels")).set_value(2).run()
    assert "the right one of 2 authors" in page.title[0].value and not page.exception


def test_damaged_rows_are_told_and_the_rest_stays(opened: Open, shipped: Path) -> None:
    shipped.write_text('{"study": "attributes", "rows": []}')
    page = opened()
    assert "Run the study again" in wrongs(page) and page.title[0].value == NOT_MEASURED.title
    assert page.selectbox(key=key_of("corpus")).options


@pytest.mark.slow
def test_an_upload_is_inferred_and_any_text_has_an_answer_or_a_message(
    opened: Open, leakscope_home: Path
) -> None:
    page = inferred(upload(opened(labels="5", each="5"), as_csv(lines())))
    assert not page.error and "labelled texts of each author. It is right for" in told(page)
    assert "Type or paste a text" in told(page)
    page.button(key="attributes-draw").click().run()
    said = told(page)
    assert "Likeliest author" in said and ("That is right." in said or "The true label is" in said)
    assert "is topic and" in said or "Neither topic nor" in said
    page.text_area(key=key_of("text")).set_value("Then the river rose.").run()
    assert "The true label" not in told(page) and "Likeliest author" in told(page)
    named, shown = (frame.value for frame in page.dataframe[:2])
    assert list(named["Attack"]) == ["Bag of words", "Linear probe"]
    assert set(shown["attack"]) == {"linear", "words"} and shown["shuffled labels"].sum() == 1
    for text in ("   ", "🙂", "x\0y", "y" * 100_000, "<b>$x$</b> :red[a]", "ab" * 9):
        page.text_area(key=key_of("text")).set_value(text).run()
        assert not page.exception
        assert page.error or "Likeliest author" in told(page) or not text.strip()
        assert bool(page.error) == (len(text) > 20_000 or "\0" in text)
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == [], "an upload is on the disk"


def test_a_job_that_fails_says_why(opened: Open) -> None:
    few = "text,author\n" + "".join(f"River {i} is high.,{'AB'[i % 2]}\n" for i in range(6))
    page = inferred(upload(opened(), few))
    assert "labels have 20 labelled texts" in wrongs(page)
    assert page.button(key="attributes-infer").label == "Infer after all"


@pytest.mark.slow
def test_a_corpus_is_inferred_by_a_link(opened: Open) -> None:
    page = inferred(opened(corpus="articles", labels="5", each="5", text="The king was crowned."))
    assert "Likeliest article" in told(page)
    assert page.selectbox(key=key_of("labels")).value == 5


@pytest.mark.parametrize("wrong", [{"corpus": "upload"}, {"corpus": "/etc/passwd"}, {"each": "7"}])
def test_what_a_link_may_not_open_is_told(opened: Open, wrong: dict[str, str]) -> None:
    page = opened(**wrong)
    (name,) = wrong
    assert name in " ".join(w.value for w in page.warning).replace("\\", "") and not page.error
