"""A story as PowerPoint: native text and tables, figures as pictures, notes where speakers look."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.errors import MissingDependencyError
from core.story.browser import draw_pictures
from core.story.deck import Deck, Page
from core.story.format import Table
from core.story.html import html_report
from core.story.prose import Block, Run

_Box = tuple[float, float, float, float]
"""Left, top, width and height in inches."""

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.slide import Slide

__all__ = ["pptx_report"]

_WIDTH, _HEIGHT, _EDGE = 13.333, 7.5, 0.5
"""Of a slide and its margin, in inches."""
_FIGURE: _Box = (5.2, 1.45, _WIDTH - 2 * _EDGE - 4.7, 3.9)
"""Beside the text of its slide."""
_PICTURE = (800, 409)
"""Pixels of a figure, before it is made sharper: of its box's shape, its letters 8 points high."""
_LETTER = 0.0078
"""Inches that a letter is wide on average, by point: broad, so that nothing overflows."""
_SPACING = 1.25
_BODY, _LEAST = 18.0, 9.0
"""Points of the text of a slide: what is begun with, and what is still read."""
_INSET = 0.15
"""Inches between a text and the edges of its box, both sides together."""
_CELL = 240
"""Letters of a cell of a table; what is longer stands in the other reports."""
_CELL_SIZE = 14.0
"""Points of the text of a cell, unless all rows have to stand on one slide."""
_IN_INTERVAL = re.compile(r", (?=[^\[\]]*\])")
_INK, _DIM = "1B1F24", "555B64"


def pptx_report(deck: Deck) -> bytes:
    """Return the report as PowerPoint.

    Raises
    ------
    MissingDependencyError
        python-pptx is not installed, or there is no Chromium to draw figures.
    """
    try:
        from pptx import Presentation
        from pptx.util import Inches
    except ImportError as error:
        raise MissingDependencyError(
            "A report as PowerPoint needs python-pptx: pip install python-pptx"
        ) from error
    has_figures = any(page.figure for page in deck.pages)
    pictures = draw_pictures(html_report(deck), *_PICTURE, 2.5) if has_figures else {}
    show = Presentation()
    show.slide_width, show.slide_height = Inches(_WIDTH), Inches(_HEIGHT)
    show.core_properties.title = deck.title
    show.core_properties.author = f"Leakscope {deck.version}"
    _cover(show, deck)
    for i, page in enumerate(deck.pages):
        _page(show, page, pictures.get(i))
    _appendix(show, deck)
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def _cover(show: Presentation, deck: Deck) -> None:
    slide = _slide(show, deck.title)
    lines = [deck.audience, f"{deck.date} · Leakscope {deck.version}",
             "What was tried, on what, by whom. It measures, and certifies nothing.",
             *deck.lacks]  # fmt: skip
    told = [Block((Run(line),)) for line in lines if line]
    _write(slide, told, (_EDGE, 2.4, _WIDTH - 2 * _EDGE, 3.5), size=20)


def _page(show: Presentation, page: Page, picture: bytes | None) -> None:
    """Draw a view: text beside its figure or above its table, and what it rests on below."""
    slide = _slide(show, page.heading)
    told = [*page.remark, *([Block((Run(page.finding, True),))] if page.finding else ())]
    told += [*page.body, *([Block(tuple(_sentence(page)))] if page.sentence else ())]
    middle, wide = 3.9, _WIDTH - 2 * _EDGE
    left = page.table.rows if page.table else ()
    if picture is not None:
        cut = _write(slide, told, (_EDGE, 1.45, 4.5, middle))
        _picture(slide, picture, page.alt, _FIGURE)
    elif page.table is not None:
        cut = _write(slide, told, (_EDGE, 1.45, wide, 1.25))
        left = _table(slide, page.table, (_EDGE, 2.75, wide, middle - 1.3))
    else:
        cut = _write(slide, told, (_EDGE, 1.45, wide, middle))
    rests = [Block((Run(f"{name}: ", True), Run(value))) for name, value in page.facts]
    cut += _write(slide, rests, (_EDGE, 5.45, wide * 0.62, 1.75), size=10, colour=_DIM)
    doubt = [Block((Run("What this does not show. ", True), *block.runs)) for block in page.caveat]
    below = (_EDGE + wide * 0.64, 5.45, wide * 0.36, 1.75)
    cut += _write(slide, doubt, below, size=10, colour=_DIM)
    notes = [page.notes, *(["In full:", *cut] if cut else ())]
    if any(notes):
        frame = slide.notes_slide.notes_text_frame
        assert frame is not None  # the template has one
        frame.text = "\n".join(filter(None, notes))
    while left and page.table:
        more = _slide(show, f"The numbers: {page.heading}")
        rest = Table(columns=page.table.columns, rows=left)
        left = _table(more, rest, (_EDGE, 1.45, wide, 5.4))


def _sentence(page: Page) -> list[Run]:
    """Return a marked sentence: what was read is bold; colours are set where it is written."""
    read = ("recovered", "came back unchanged")
    return [Run(piece, is_bold=mark in read) for piece, mark in page.sentence]


def _appendix(show: Presentation, deck: Deck) -> None:
    wide = (_EDGE, 1.45, _WIDTH - 2 * _EDGE, 5.5)
    facts = [Block((Run(f"{name}: ", True), Run(value))) for name, value in deck.facts]
    limits = [Block((Run(limit),), is_item=True) for limit in deck.limits]
    clauses = [
        Block((Run(f"{clause.source}: ", True), Run(clause.question)), is_item=True)
        for clause in deck.clauses
    ]
    none = Block((Run("The figures answer none of them, and nothing here says that anything is "
                      "complied with."),))  # fmt: skip
    commands = [Block((Run(command, is_code=True),)) for command in deck.commands]
    for title, told in (
        ("What it rests on", facts),
        ("Limits", limits),
        ("Questions that these figures bear on", [none, *clauses]),
        ("What repeats it", commands),
    ):
        if told:
            _write(_slide(show, title), told, wide, size=14)


def _slide(show: Presentation, title: str) -> Slide:
    """Return a new slide with a title, which is what a screen reader reads first."""
    slide = show.slides.add_slide(show.slide_layouts[5])  # title only
    shape = slide.shapes.title
    assert shape is not None
    box = (_EDGE, 0.35, _WIDTH - 2 * _EDGE, 1.0)
    _place(shape, box)
    frame = shape.text_frame
    _fill(frame, [Block((Run(title, True),))], _size([title], box, 28), _INK)
    return slide


def _write(
    slide: Slide,
    told: Sequence[Block],
    box: _Box,
    *,
    size: float = _BODY,
    colour: str = _INK,
) -> list[str]:
    """Write paragraphs into a box, as small as it takes to fit; return those that had to be cut."""
    if not told:
        return []
    from pptx.util import Inches

    shape = slide.shapes.add_textbox(*(Inches(part) for part in box))
    texts = [_told(block) for block in told]
    size = _size(texts, box, size)
    if _fits(texts, box, size):
        _fill(shape.text_frame, told, size, colour)
        return []
    _fill(shape.text_frame, _cut(texts, box, size), size, colour)
    return texts


def _told(block: Block) -> str:
    return f"• {block.text}" if block.is_item else block.text


def _cut(texts: Sequence[str], box: _Box, size: float) -> list[Block]:
    """Return as much of paragraphs as fits."""
    kept: list[str] = []
    for text in texts:
        words = text.split(" ")
        n = len(words)
        while words and not _fits([*kept, " ".join([*words, "…"])], box, size):
            words = words[: len(words) * 9 // 10]
        if not words:
            break
        kept.append(text if len(words) == n else " ".join([*words, "…"]))
    return [Block((Run(text),)) for text in kept]


def _fill(frame: Any, told: Sequence[Block], size: float, colour: str) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.text import MSO_ANCHOR
    from pptx.util import Inches, Pt

    frame.word_wrap = True
    frame.vertical_anchor = MSO_ANCHOR.TOP
    frame.margin_left = frame.margin_right = Inches(0.05)
    for i, block in enumerate(told):
        paragraph = frame.paragraphs[0] if i == 0 else frame.add_paragraph()
        paragraph.space_after = Pt(size / 3)
        for run in (Run("• "), *block.runs) if block.is_item else block.runs:
            written = paragraph.add_run()
            written.text = run.text
            written.font.size, written.font.bold = Pt(size), run.is_bold
            written.font.name = "Consolas" if run.is_code else "Calibri"
            written.font.color.rgb = RGBColor.from_string(colour)


def _size(texts: Sequence[str], box: _Box, size: float) -> float:
    """Return the largest size, in points, in which texts fit into a box."""
    while size > _LEAST and not _fits(texts, box, size):
        size -= 0.5
    return size


def _fits(texts: Sequence[str], box: _Box, size: float) -> bool:
    return _height(texts, box[2] - _INSET, size) <= box[3] - _INSET


def _height(texts: Sequence[str], width: float, size: float) -> float:
    line = size * _SPACING / 72
    return sum(_lines(text, width, size) * line + size / 3 / 72 for text in texts)


def _lines(text: str, width: float, size: float) -> int:
    """Return how many lines a text takes, word by word."""
    room = max(int(width / (_LETTER * size)), 1)
    lines, left = 1, room
    for word in text.split(" "):
        n = len(word)
        if n > left and left < room:
            lines, left = lines + 1, room
        while n > room:
            lines, n = lines + 1, n - room
        left -= n + 1
    return lines


def _picture(slide: Slide, picture: bytes, alt: str, box: _Box) -> None:
    """Put a figure into a box, as large as its shape allows; its words for those who cannot see."""
    from pptx.util import Inches

    left, top, width, height = box
    shape = _PICTURE[0] / _PICTURE[1]
    width = min(width, height * shape)
    drawn = slide.shapes.add_picture(
        io.BytesIO(picture), Inches(left), Inches(top), Inches(width), Inches(width / shape)
    )
    drawn._element._nvXxPr.cNvPr.set("descr", alt)


def _table(slide: Slide, table: Table, box: _Box) -> tuple[tuple[str, ...], ...]:
    """Draw as many rows of a table as fit; return those that are left."""
    from pptx.util import Inches, Pt

    left, top, width, height = box
    texts = [[_clipped(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = _widths(texts, width)
    size = _CELL_SIZE
    while size > _LEAST and sum(_row(row, widths, size) for row in texts) > height:
        size -= 0.5
    while len(texts) > 2 and sum(_row(row, widths, size) for row in texts) > height:
        texts.pop()
    frame = slide.shapes.add_table(
        len(texts), len(table.columns), *(Inches(part) for part in (left, top, width, 0.3))
    )
    for i, part in enumerate(widths):
        frame.table.columns[i].width = Inches(part)
    for i, row in enumerate(texts):
        frame.table.rows[i].height = Inches(_row(row, widths, size))
        for j, text in enumerate(row):
            cell = frame.table.cell(i, j)
            cell.margin_top = cell.margin_bottom = Inches(0.03)
            cell.margin_left = cell.margin_right = Inches(0.06)
            cell.text = text
            cell.text_frame.paragraphs[0].font.size = Pt(size)
    return table.rows[len(texts) - 1 :]


def _widths(texts: Sequence[Sequence[str]], width: float) -> list[float]:
    """Return the widths of columns: no word is broken where all have room, then the long ones."""
    columns = list(zip(*texts, strict=True))
    words = [max(len(word) for text in column for word in text.split(" ")) for column in columns]
    least = [_LETTER * _CELL_SIZE * n + _INSET for n in words]
    longer = [min(max(map(len, texts)), 60) - n for texts, n in zip(columns, words, strict=True)]
    wanted = [1 + max(n, 0) for n in longer]
    spare = max(width - sum(least), 0.0)
    asked = [a + spare * b / sum(wanted) for a, b in zip(least, wanted, strict=True)]
    return [width * part / sum(asked) for part in asked]


def _clipped(cell: str) -> str:
    """Return a cell on one line, of bounded length, an interval of it in one piece."""
    line = _IN_INTERVAL.sub(",\u00a0", " ".join(cell.split()))
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"


def _row(row: Sequence[str], widths: Sequence[float], size: float) -> float:
    lines = [_lines(text, width - 0.15, size) for text, width in zip(row, widths, strict=True)]
    return max(lines) * size * _SPACING / 72 + 0.08


def _place(shape: Any, box: _Box) -> None:
    from pptx.util import Inches

    shape.left, shape.top, shape.width, shape.height = (Inches(part) for part in box)
