"""Each story that ships in each kind of report: all its slides, in the order of their telling."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any

import pytest
from pptx import Presentation
from streamlit.testing.v1 import AppTest
from test_pins import MARK, SENTENCE, VISITS, pinned

from leakscope.core.browser import has_browser
from leakscope.core.story.deck import Deck, Page, make_deck
from leakscope.core.story.files import report_bytes
from leakscope.core.story.format import Story
from leakscope.core.story.shipped import shipped_stories

STORIES = list(shipped_stories())
PICTURE, TABLE = 13, 19
"""Kinds of shapes, as python-pptx numbers them."""

needs_browser = pytest.mark.skipif(not has_browser(), reason="no Chromium or Chrome is installed")
needs_reader = pytest.mark.skipif(
    shutil.which("pdftotext") is None, reason="no pdftotext (of poppler-utils) reads the PDF"
)
printed = [pytest.mark.browser, needs_browser]
KINDS = (
    ".html",
    pytest.param(".pdf", marks=[*printed, needs_reader]),
    pytest.param(".pptx", marks=printed),
)


@cache
def deck_of(name: str) -> Deck:
    return make_deck(shipped_stories()[name], "2026-03-01")


@cache
def report(name: str, suffix: str) -> bytes:
    return report_bytes(deck_of(name), suffix)


class _Slides(HTMLParser):
    """The texts of each section of a document, in order: its heading, and what figures tell."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.slides: list[list[str]] = []
        self.is_within = False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "section":
            self.slides.append([])
            self.is_within = True
        if self.is_within and tag in ("h1", "h2"):
            assert self.slides[-1] == [], "something stands before the heading"
        self.handle_data(dict(attrs).get("aria-label") or "")

    def handle_endtag(self, tag: str) -> None:
        self.is_within &= tag != "section"

    def handle_data(self, data: str) -> None:
        if self.is_within and data.strip():
            self.slides[-1].append(data)


def read_pdf(content: bytes) -> list[str]:
    """Return the text of each page, in the order in which it is read aloud."""
    command = ["pdftotext", "-raw", "-enc", "UTF-8", "-", "-"]
    found = subprocess.run(command, input=content, capture_output=True, check=True)
    return found.stdout.decode().split("\f")[:-1]


def texts_of(slide: Any) -> Iterator[str]:
    """Yield what a slide of PowerPoint says, shape by shape."""
    for shape in slide.shapes:
        if shape.has_text_frame:
            yield shape.text_frame.text
        elif shape.shape_type == PICTURE:
            yield alt_of(shape)
        elif shape.has_table:
            yield from (cell.text for row in shape.table.rows for cell in row.cells)


def alt_of(shape: Any) -> str:
    return str(shape._element._nvXxPr.cNvPr.get("descr"))


def slides(content: bytes, suffix: str) -> list[str]:
    """Return what each slide of a report says, all blanks left out, since lines break anywhere."""
    if suffix == ".html":
        found: Iterable[str] = ("".join(each) for each in _Slides(content.decode()).slides)
    elif suffix == ".pdf":
        found = read_pdf(content)
    else:
        found = ("".join(texts_of(slide)) for slide in Presentation(io.BytesIO(content)).slides)
    return [packed(each) for each in found]


def packed(text: str) -> str:
    return "".join(text.split())


def told(page: Page, *, has_alt: bool) -> list[str]:
    """Return what a slide has to say, in the order in which it is to be read."""
    parts = [page.heading, *(block.text for block in page.remark), page.finding]
    parts += [block.text for block in page.body]
    parts += ["".join(piece for piece, _ in page.sentence), page.alt * has_alt]
    parts += [part for fact in page.shown for part in fact]
    parts += [block.text for block in page.caveat]
    return [packed(part) for part in parts if part]


def in_order(parts: Iterable[str], text: str) -> list[str]:
    """Return those of parts that do not follow one another in a text."""
    at, missing = 0, []
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            missing.append(part)
        else:
            at = found + len(part)
    return missing


@pytest.mark.slow
@pytest.mark.parametrize("suffix", KINDS)
@pytest.mark.parametrize("name", STORIES)
def test_every_slide_says_its_title_finding_and_numbers_in_order(name: str, suffix: str) -> None:
    deck, shown = deck_of(name), slides(report(name, suffix), suffix)
    assert packed(deck.title) in shown[0]
    for page, text in zip(deck.pages, shown[1:], strict=False):  # a page each, before the appendix
        assert text.startswith(packed(page.heading))
        is_advice = page.heading.startswith("Three decisions")  # measures nothing
        assert not page.shown if is_advice else dict(page.shown)["n"]
        assert in_order(told(page, has_alt=suffix != ".pdf"), text) == []
    ends = [i for i, text in enumerate(shown) if text.startswith(("Appendix", "Dataandmethod"))]
    numbers = sum(text.startswith("Numbers:") for text in shown) if suffix == ".pptx" else 0
    assert ends[0] - numbers == 1 + len(deck.pages)


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("name", STORIES)
def test_powerpoint_is_read_title_first_then_words_figure_or_table_and_doubt(name: str) -> None:
    deck, show = deck_of(name), Presentation(io.BytesIO(report(name, ".pptx")))
    for slide in show.slides:
        assert slide.shapes[0] == slide.shapes.title and slide.shapes.title.text
    for page, slide in zip(deck.pages, list(show.slides)[1:], strict=False):
        (*words, last) = [s.shape_type for s in slide.shapes if not s.is_placeholder]
        shown = [kind for kind in words if kind in (PICTURE, TABLE)]
        asked = [PICTURE] if page.figure else [TABLE] if page.table else []
        assert shown == asked and last not in asked, "the doubt comes last"
        assert words[0] not in asked, "the finding stands before what shows it"
        assert [alt_of(s) for s in slide.shapes if s.shape_type == PICTURE] == (
            [page.alt] if page.figure else []
        )
        assert page.alt or not page.figure
    rows = {
        tuple(packed(cell.text) for cell in row.cells)
        for slide in show.slides
        for shape in slide.shapes
        if shape.has_table
        for row in shape.table.rows
    }
    tables = [page.table for page in deck.pages if page.table]
    needed = [row for table in tables for row in (table.columns, *table.rows)]
    assert [row for row in needed if tuple(map(packed, row)) not in rows] == []


@pytest.mark.parametrize("suffix", KINDS)
def test_what_was_typed_is_in_a_report_where_it_may_be_and_nowhere_else(
    small_app: AppTest, suffix: str
) -> None:
    page = VISITS["inversion"](small_app)
    for with_typed in (False, True):
        pin = pinned(page, "inversion", with_typed=with_typed)
        content = report_bytes(make_deck(Story(title="Mine", pins=(pin,)), "2026-03-01"), suffix)
        shown = "".join(slides(content, suffix))
        assert (packed(SENTENCE) in shown) == with_typed
        assert bool(re.search(MARK, shown, re.IGNORECASE)) == with_typed
