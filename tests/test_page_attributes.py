from __future__ import annotations

import csv
import io
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.attacks.attributes import limits
from core.attacks.attributes.examples import Examples
from core.studies import attribute_curves
from core.studies.attribute_job import _drawn
from core.studies.attribute_request import MOST_LABELS, AttributeRequest
from core.studies.attribute_tables import markdown
from core.studies.attributes import AttributeStudy
from core.studies.registry import run_study
from core.studies.tables import write_rows
from dashboard import cache
from dashboard.attributes.state import UPLOAD, key_of
from dashboard.attributes.views import QUESTION
from dashboard.inversion.answers import ENCODER

AUTHORS = ("Ada", "=Bob", "<b>Çelik</b> $x$", "www.evil.test")
OWN = ("river", "doctor", "garden", "winter")
OTHERS = """money letter bridge market harbour teacher window engine forest station dinner summer
cousin border island ticket planet orange candle hammer rabbit lawyer tunnel silver museum castle
butter pencil desert turtle violin carpet basket ladder""".split()  # noqa: SIM905 - a list literal would take 36 lines
Open = Callable[..., AppTest]


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
    def visit(**address: str) -> AppTest:
        for name, value in address.items():
            small_app.query_params[name] = value
        small_app.switch_page("../pages/attributes.py").run()
        assert not small_app.exception
        return small_app

    return visit


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


def test_without_rows_the_page_says_what_measures_them(opened: Open) -> None:
    page = opened()
    assert page.title[0].value == QUESTION and not page.error
    (info,) = (i.value for i in page.info)
    assert "Nothing was measured" in info and "python -m core study attributes --spec" in info
    assert not page.dataframe, "no figure that nobody measured"


def test_the_finding_is_that_of_the_shipped_rows(
    opened: Open, shipped: Path, tmp_path: Path
) -> None:
    books = tmp_path / "books.csv"
    books.write_text(as_csv(lines()), encoding="utf-8")
    study = AttributeStudy(
        target=str(books), group_column="book_id", other=str(books), labels=(2, 4), sizes=(2, 6),
        attribute_attacks=("majority", "words", "linear"), n_targets=30, splits=("group",),
        seeds=(0,),
    )  # fmt: skip
    rows = run_study("attributes", study, tmp_path / "cells")
    write_rows(shipped, "attributes", rows, markdown(rows))
    page = opened()
    view = attribute_curves.View("group", 4, 6)
    one = attribute_curves.mean_at(rows, view, "linear", "top1", "minilm")
    assert one is not None
    assert (
        f"the author of {100 * one.value:.0f}\N{NO-BREAK SPACE}% of the texts"
        in page.title[0].value
    )
    said = told(page)
    assert (
        "95 % interval" in said and "guessing reaches" in said and "a classifier on the raw" in said
    )
    assert "Topic or style?" in said
    assert "is taken for" in said or "No label is mixed up" in said
    assert len(page.dataframe[0].value) == len(rows) and not page.error
    page.selectbox(key=key_of("measured_n_labels")).set_value(2).run()
    assert "Of 2 labels" in told(page) and not page.exception


def test_damaged_rows_are_told_and_the_rest_stays(opened: Open, shipped: Path) -> None:
    shipped.write_text('{"study": "attributes", "rows": []}')
    page = opened()
    assert "Make it anew" in wrongs(page) and page.title[0].value == QUESTION
    assert page.selectbox(key=key_of("corpus")).options


def test_an_upload_is_inferred_and_a_text_named(opened: Open, leakscope_home: Path) -> None:
    page = inferred(upload(opened(labels="5", each="5"), as_csv(lines())))
    assert not page.error and "The vector alone gives away the author of" in told(page)
    assert "Type or paste a text" in told(page)
    page.button(key="attributes-draw").click().run()
    said = told(page)
    assert "Likeliest author" in said and ("That is right." in said or "In truth:" in said)
    assert "is topic," in said or "Neither its topic" in said
    page.text_area(key=key_of("text")).set_value("Then the river rose.").run()
    assert "In truth" not in told(page) and "Likeliest author" in told(page)
    shown = page.dataframe[0].value
    assert set(shown["attack"]) == {"linear", "words"} and shown["labels shuffled"].sum() == 1
    assert [p for p in leakscope_home.rglob("*") if p.is_file()] == [], "an upload is on the disk"


def test_any_text_has_an_answer_or_a_message(opened: Open) -> None:
    page = inferred(upload(opened(labels="5", each="5"), as_csv(lines(12))))
    for text in ("   ", "🙂", "x\0y", "y" * 100_000, "<b>$x$</b> :red[a]", "ab" * 9):
        page.text_area(key=key_of("text")).set_value(text).run()
        assert not page.exception
        assert page.error or "Likeliest author" in told(page) or not text.strip()
        assert bool(page.error) == (len(text) > 20_000 or "\0" in text)


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("text,author\nOne river.,A\nTwo gardens.,A\n", "at least two labels"),
        ("text,author\nOne river.,\nTwo gardens.,\n", "holds no label"),
        ("text\nOne river.\nTwo gardens.\n", "no two columns"),
        ("text,author,book_id\nOne river.,A,1\nTwo gardens.,B,1\n", "several labels"),
        ("text,author,book_id\nOne river.,A,1\nTwo gardens.,B,\n", "has a label and no"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(opened: Open, content: str, wrong: str) -> None:
    page = upload(opened(), content)
    assert wrong in wrongs(page)


def test_a_job_that_fails_says_why(opened: Open) -> None:
    few = "text,author\n" + "".join(f"River {i} is high.,{'AB'[i % 2]}\n" for i in range(6))
    page = inferred(upload(opened(), few))
    assert "labels have 20 labelled texts" in wrongs(page)
    assert page.button(key="attributes-infer").label == "Infer after all"


def test_a_corpus_is_inferred_by_a_link(opened: Open) -> None:
    page = inferred(opened(corpus="articles", labels="5", each="5", text="The king was crowned."))
    assert "gives away the article of" in told(page) and "Likeliest article" in told(page)
    assert page.selectbox(key=key_of("labels")).value == 5


@pytest.mark.parametrize("wrong", [{"corpus": "upload"}, {"corpus": "/etc/passwd"}, {"each": "7"}])
def test_what_a_link_may_not_open_is_told(opened: Open, wrong: dict[str, str]) -> None:
    page = opened(**wrong)
    (name,) = wrong
    assert name in " ".join(w.value for w in page.warning).replace("\\", "") and not page.error


def test_a_file_of_ten_thousand_labels_is_drawn_from_as_the_helps_say(opened: Open) -> None:
    page = opened(labels="50", each="5")
    (labels,) = [box for box in page.selectbox if box.key == key_of("labels")]
    assert f"at most {MOST_LABELS} are drawn here" in labels.help
    assert f"up to {limits.MOST_LABELS:,} apart" in labels.help
    names = [f"author {i}" for i in range(10_000) for _ in range(7)]
    texts = [f"word{i} river{j} {name}" for i, name in enumerate(names[::7]) for j in range(7)]
    request = AttributeRequest(
        source="x", on=ENCODER, n_labels=50, n_per_label=5, label_column="author", is_upload=True
    )
    drawn = _drawn(request, Examples("a.csv", tuple(texts), tuple(names)))
    assert len(drawn.labels) == MOST_LABELS == 50
