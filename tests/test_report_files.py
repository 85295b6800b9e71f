"""Reports as PDF and PowerPoint, drawn by an installed Chromium."""

from __future__ import annotations

import asyncio
import io
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation

from leakscope.core import browser
from leakscope.core.browser import draw_pictures, has_browser, print_document
from leakscope.core.errors import MissingDependencyError
from leakscope.core.findings.finding import Finding, Table
from leakscope.core.story.deck import Deck, make_deck
from leakscope.core.story.files import report_bytes
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.html import html_report
from leakscope.core.story.pptx import count_lines, pptx_report, text_height
from leakscope.core.story.reading import read_story
from leakscope.core.story.shipped import open_story, shipped_stories

needs_browser = pytest.mark.skipif(not has_browser(), reason="no Chromium or Chrome is installed")


@pytest.fixture(scope="module")
def board() -> Deck:
    return make_deck(open_story("safe-to-store"), "2026-03-01")


@pytest.fixture(scope="module")
def show(board: Deck) -> Any:
    return Presentation(io.BytesIO(report_bytes(board, ".pptx")))


@pytest.fixture
def words() -> Deck:
    """A deck without figures, for which no browser is needed."""
    long = "One finding after another, each with the doubt that belongs to it. " * 40
    table = Table(
        columns=("Attack", "F1"),
        rows=tuple((f"attack {i} " + "of a long name " * 6, "1") for i in range(40)),
    )
    slide = Finding(
        title="A title that goes on " * 12,
        body=long,
        table=table,
        caveat=long,
        facts=tuple((f"fact {i}", long[:300]) for i in range(8)),
    )
    pin = Pin(page="inversion", remark="R", notes="Say it", slide=slide)
    return make_deck(Story(title="Long", pins=(pin,)), "2026-03-01")


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("name", list(shipped_stories()))
def test_a_pdf_is_small_and_holds_a_slide_a_page(name: str) -> None:
    deck = make_deck(open_story(name), "2026-03-01")
    document = html_report(deck)
    end = '<section class="appendix">The end</section>'
    slides, n = re.subn(r'<section class="appendix".*?</section>', end, document, flags=re.S)
    assert n == 1
    assert _n_pages(print_document(slides)) == 2 + len(deck.pages)  # the title, and the end
    alone = re.sub(r'<section class="slide.*?</section>', "", document, flags=re.S)
    alone = re.sub(
        r'(<script type="application/json" id="figures">).*?(</script>)',
        r"\1{}\2",
        alone,
        flags=re.S,
    )
    found = report_bytes(deck, ".pdf")
    assert _n_pages(found) == 1 + len(deck.pages) + _n_pages(print_document(alone))
    assert found.startswith(b"%PDF-")
    assert len(found) <= 5_000_000
    assert b"/StructTreeRoot" in _whole(found)  # tagged: a screen reader finds its way
    assert b"/MarkInfo" in _whole(found)


CASES = Path(__file__).parent / "cases"
ODD = "שלום ﷽ 👩‍👩‍👧 e\u0301\u0301\u0301 \u2028\u2029 </script><!-- ]]> \ufffd\u200b🇦🇹 "
FIGURES: list[Any] = [
    {"data": [], "layout": {}},
    {"data": [{"type": "bar", "x": [None], "y": ["nothing"]}], "layout": {"height": 1}},
    {"data": [{"type": "scatter", "x": [], "y": []}], "layout": {"height": 10**6}},
    {"data": [{"type": "heatmap", "z": [[]]}], "layout": {"title": {"text": ODD * 50}}},
]
SLIDES = [
    Finding(title="A title"),
    Finding(
        title="word" * 75,
        body="word" * 5000,
        caveat="word" * 1000,
        facts=(("fact", "word" * 500),) * 20,
    ),
    Finding(
        title=ODD * 3,
        body=ODD * 99,
        caveat=ODD,
        alt=ODD,
        commands=(ODD,),
        facts=((ODD, ODD),),
        sentence=((ODD, "recovered"), ("", "none")),
    ),
    Finding(title="W", table=Table(columns=("a",) * 12, rows=(("cell of words",) * 12,) * 200)),
    Finding(title="T", table=Table(columns=(), rows=())),
    *(Finding(title="F", figure=each, alt="A figure") for each in FIGURES),
    Finding(title=""),
]
"""A title alone, long words, odd letters, a wide and an empty table, odd figures, and nothing."""


@pytest.mark.browser
@needs_browser
@pytest.mark.parametrize("findings", [[], SLIDES], ids=["no slide", "odd slides"])
def test_a_report_comes_out_whatever_the_slides_hold(findings: list[Finding]) -> None:
    pins = tuple(Pin(page="inversion", slide=slide) for slide in findings)
    deck = make_deck(Story(title="Odd", pins=pins), "2026-03-01")
    found = report_bytes(deck, ".pdf")
    assert found.startswith(b"%PDF-") and _n_pages(found) >= 1 + len(pins)
    slides = Presentation(io.BytesIO(report_bytes(deck, ".pptx"))).slides
    titles = ["".join(slide.shapes.title.text.split()) for slide in slides]
    wanted = ["".join(slide.title.split()) for slide in findings]
    assert titles[1 : 1 + len(pins)] == wanted


@pytest.mark.browser
@needs_browser
def test_a_story_without_a_figure_is_written_in_every_form() -> None:
    story = read_story(CASES / "stories" / "story_one_sentence.json")
    deck = make_deck(story, "2026-03-01")
    assert all(page.figure is None for page in deck.pages) and not deck.lacks
    pdf, pptx, html = (report_bytes(deck, suffix) for suffix in (".pdf", ".pptx", ".html"))
    assert pdf.startswith(b"%PDF-") and _n_pages(pdf) >= 2
    assert deck.pages[0].heading in html.decode()
    assert len(Presentation(io.BytesIO(pptx)).slides) >= 2


def _whole(pdf: bytes) -> bytes:
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    return b"".join(_unpacked(stream) for stream in streams) + pdf


def _n_pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type /Page\b", _whole(pdf)))


def _unpacked(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream.strip(b"\r\n"))
    except zlib.error:
        return b""


@pytest.mark.browser
@needs_browser
def test_powerpoint_has_native_text_tables_pictures_and_notes_within_its_slides(
    board: Deck, show: Any
) -> None:
    inside(show)
    titles = [slide.shapes.title.text for slide in show.slides]
    assert titles[0] == board.title
    for page in board.pages:
        at = titles.index(page.heading)
        slide = show.slides[at]
        texts = "\n".join(s.text_frame.text for s in slide.shapes if s.has_text_frame)
        assert all(block.text in texts for block in page.body)
        assert [f for f in page.shown if ": ".join(f) not in texts] == [], page.heading
        assert slide.notes_slide.notes_text_frame.text == page.notes
        pictures = [s for s in slide.shapes if s.shape_type == 13]
        assert len(pictures) == (page.figure is not None)
        assert all(p._element._nvXxPr.cNvPr.get("descr") == page.alt for p in pictures)
    cells = {
        cell.text.replace("\u00a0", " ")  # an interval is not broken
        for slide in show.slides
        for shape in slide.shapes
        if getattr(shape, "has_table", False) and shape.has_table
        for row in shape.table.rows
        for cell in row.cells
    }
    assert all(c in cells for page in board.pages if page.table for r in page.table.rows for c in r)


@pytest.mark.browser
@needs_browser
def test_numbers_come_after_the_talk_and_nothing_is_cut_short(board: Deck, show: Any) -> None:
    titles = [slide.shapes.title.text for slide in show.slides]
    talk = [titles.index(page.heading) for page in board.pages]
    assert talk == list(range(1, len(board.pages) + 1))  # the title, then view after view
    numbers = [i for i, title in enumerate(titles) if title.startswith("Numbers: ")]
    assert numbers and min(numbers) > max(talk)
    texts = [s.text_frame.text for slide in show.slides for s in slide.shapes if s.has_text_frame]
    assert [text for text in texts if "…" in text] == []
    for name, value in board.facts:
        assert any(f"{name}: {value}" in text for text in texts), name


@pytest.mark.browser
@needs_browser
def test_a_sentence_is_marked_in_colours_and_says_what_they_mean(board: Deck, show: Any) -> None:
    place, page = next((i, page) for i, page in enumerate(board.pages) if page.sentence)
    shapes = show.slides[1 + place].shapes
    runs = [
        run
        for shape in shapes
        if shape.has_text_frame
        for paragraph in shape.text_frame.paragraphs
        for run in paragraph.runs
    ]
    looks: dict[str, set[str]] = {}
    for piece, mark in page.sentence:
        if mark in dict(page.legend):
            looks.setdefault(mark, set()).update(
                str(run.font.color.rgb) for run in runs if run.text in (piece, mark)
            )
    assert len(looks) == len(page.legend) > 1
    assert all(len(colours) == 1 for colours in looks.values()), looks
    assert len(set.union(*looks.values())) == len(looks)
    assert all(any(run.text == mark for run in runs) for mark, _ in page.legend)


def inside(show: Any) -> None:
    for slide in show.slides:
        for shape in slide.shapes:
            assert shape.left >= 0 and shape.top >= 0
            assert shape.left + shape.width <= show.slide_width + 1
            height = shape.height
            if getattr(shape, "has_table", False) and shape.has_table:
                height = sum(row.height for row in shape.table.rows)
            assert shape.top + height <= show.slide_height + 1


def test_long_texts_and_tables_keep_within_their_slides(words: Deck) -> None:
    show = Presentation(io.BytesIO(pptx_report(words)))
    inside(show)
    for slide in show.slides:
        for shape in slide.shapes:
            if shape.has_text_frame and shape.text_frame.text:
                runs = [r for p in shape.text_frame.paragraphs for r in p.runs]
                size = max(run.font.size.pt for run in runs)
                texts = [p.text for p in shape.text_frame.paragraphs]
                assert (
                    text_height(texts, shape.width / 914400 - 0.15, size) <= shape.height / 914400
                )
    told = show.slides[1].notes_slide.notes_text_frame.text
    assert told.startswith("Say it")
    assert words.pages[0].body[0].text in told  # nothing is lost


def test_no_word_nor_interval_of_a_table_is_broken() -> None:
    table = Table(
        columns=("Page", "n", "F1", "Attacker"),
        rows=(("Representations", "1,704", "28 [27, 30]", "a classifier of words " * 9),) * 3,
    )
    pin = Pin(page="inversion", slide=Finding(title="One", table=table))
    shown = Presentation(io.BytesIO(pptx_report(make_deck(Story(title="T", pins=(pin,)), "2026"))))
    (drawn,) = (s.table for slide in shown.slides for s in slide.shapes if s.has_table)
    for row in drawn.rows:
        for cell, column in zip(row.cells, drawn.columns, strict=True):
            longest = max(cell.text.split(" "), key=len)
            assert count_lines(longest, column.width / 914400 - 0.15, 14) == 1, longest
    assert drawn.cell(1, 2).text.split(" ") == ["28", "[27,\u00a030]"]


def test_lines_are_counted_word_by_word() -> None:
    assert count_lines("a", 10, 18) == 1
    assert count_lines("word " * 100, 2, 18) > count_lines("word " * 100, 4, 18) > 1
    assert count_lines("x" * 1000, 2, 18) >= 1000 // int(2 / (0.0078 * 18))


@pytest.mark.browser
@needs_browser
def test_figures_are_drawn_even_where_a_loop_is_running(board: Deck) -> None:
    async def drawn() -> dict[int, bytes]:
        return draw_pictures(html_report(board), 400, 300, 1)

    found = asyncio.run(drawn())
    assert sorted(found) == [i for i, page in enumerate(board.pages) if page.figure]
    assert all(picture.startswith(b"\x89PNG") for picture in found.values())


@pytest.mark.slow
def test_without_a_browser_it_is_said_what_to_do(
    board: Deck, monkeypatch: pytest.MonkeyPatch
) -> None:
    from choreographer.browsers import Chromium

    monkeypatch.setattr(Chromium, "find_browser", classmethod(lambda cls, **_: None))
    assert not browser.has_browser()
    for suffix in (".pdf", ".pptx"):
        with pytest.raises(MissingDependencyError, match="HTML"):
            report_bytes(board, suffix)
