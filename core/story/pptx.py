"""Render a story as PowerPoint: native text and tables, figures as pictures, speaker notes."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakscope.core.browser import draw_pictures
from leakscope.core.errors import MissingDependencyError, install
from leakscope.core.findings.finding import Table
from leakscope.core.findings.prose import Block, Run
from leakscope.core.story.deck import MARKS, Deck, Page
from leakscope.core.story.html import html_report

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.slide import Slide


Box = tuple[float, float, float, float]
"""Left, top, width and height in inches."""

LETTER = 0.0078
"""Average letter width in inches per point of font size, estimated generously."""
SPACING = 1.25
LEAST = 9.0
"""Minimum legible font size, in points."""
INSET = 0.15
"""Total horizontal or vertical padding of a box, in inches."""


def block_text(block: Block) -> str:
    """Return a paragraph's text, with a bullet if it is an item."""
    return f"• {block.text}" if block.is_item else block.text


def truncate_to_fit(texts: Sequence[str], box: Box, size: float) -> list[Block]:
    """Cut paragraphs to what fits a box at a font size, ending with "…"; return blocks."""
    kept: list[str] = []
    for text in texts:
        words = text.split(" ")
        n = len(words)
        while words and not fits([*kept, " ".join([*words, "…"])], box, size):
            words = words[: len(words) * 9 // 10]
        if not words:
            break
        kept.append(text if len(words) == n else " ".join([*words, "…"]))
    return [Block((Run(text),)) for text in kept]


def largest_font_size(texts: Sequence[str], box: Box, size: float) -> float:
    """Return the largest font size, up to `size` points, at which texts fit a box."""
    while size > LEAST and not fits(texts, box, size):
        size -= 0.5
    return size


def fits(texts: Sequence[str], box: Box, size: float) -> bool:
    """Return whether paragraphs of text fit a box at a font size."""
    return text_height(texts, box[2] - INSET, size) <= box[3] - INSET


def text_height(texts: Sequence[str], width: float, size: float) -> float:
    """Return the height in inches of paragraphs at a width and font size."""
    line = size * SPACING / 72
    return sum(count_lines(text, width, size) * line + size / 3 / 72 for text in texts)


def count_lines(text: str, width: float, size: float) -> int:
    """Estimate how many lines a text takes at a width and font size."""
    room = max(int(width / (LETTER * size)), 1)
    n_lines, left = 1, room
    for word in text.split(" "):
        n = len(word)
        if n > left and left < room:
            n_lines, left = n_lines + 1, room
        while n > room:
            n_lines, n = n_lines + 1, n - room
        left -= n + 1
    return n_lines


_WIDTH, _HEIGHT, _EDGE = 13.333, 7.5, 0.5
"""Slide width, height and margin, in inches."""
_FIGURE: Box = (5.2, 1.45, _WIDTH - 2 * _EDGE - 4.7, 3.9)
"""Box of a figure beside its slide's text."""
_PICTURE = (800, 409)
"""Pixels of a figure before scaling; its letters are then 8 points high."""
_BODY = 18.0
"""Initial font size of a slide's text, in points."""
_SMALL = 12.0
"""Initial font size of facts and caveats, in points."""
_EASY = 12.0
"""Minimum font size of the appendix, in points; longer text continues on another slide."""
_CELL = 240
"""Maximum number of letters of a table cell; the other reports show it in full."""
_CELL_SIZE = 14.0
"""Font size of table cells, in points, unless all rows must fit one slide."""
_IN_INTERVAL = re.compile(r", (?=[^\[\]]*\])")
_INK, _DIM = "1B1F24", "555B64"
_LOOKS: Mapping[str, tuple[str, bool, bool]] = {
    "hit": ("B34700", True, True),
    "miss": ("00694D", False, True),
    "unknown": (_DIM, False, True),
    "stop": (_DIM, False, False),
    "wrong": (_DIM, False, False),
}
"""Colour of each mark, and whether it is bold and underlined."""


def pptx_report(deck: Deck) -> bytes:
    """Render a deck as a PowerPoint file; return its bytes.

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
            f"A report as PowerPoint needs python-pptx: {install('python-pptx')}"
        ) from error
    has_figures = any(page.figure for page in deck.pages)
    pictures = draw_pictures(html_report(deck), *_PICTURE, 2.5) if has_figures else {}
    show = Presentation()
    show.slide_width, show.slide_height = Inches(_WIDTH), Inches(_HEIGHT)
    show.core_properties.title = deck.title
    show.core_properties.author = f"Leakscope {deck.version}"
    _add_cover(show, deck)
    left = [_add_page(show, page, pictures.get(i)) for i, page in enumerate(deck.pages)]
    for page, rows in zip(deck.pages, left, strict=True):
        while rows and page.table:  # that did not fit beside the figure
            more = _add_slide(show, f"Numbers: {page.heading}")
            rest = Table(columns=page.table.columns, rows=rows)
            rows = _add_table(more, rest, (_EDGE, 1.45, _WIDTH - 2 * _EDGE, 5.4))
    _add_appendix(show, deck)
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def _add_cover(show: Presentation, deck: Deck) -> None:
    """Add the title slide to a presentation."""
    slide = _add_slide(show, deck.title)
    lines = [
        deck.audience,
        f"{deck.date} · Leakscope {deck.version}",
        "Which attackers were tried on which texts. This report measures; it does not certify.",
        *deck.lacks,
    ]
    told = [Block((Run(line),)) for line in lines if line]
    _write_text(slide, told, (_EDGE, 2.4, _WIDTH - 2 * _EDGE, 3.5), size=20)


def _add_page(show: Presentation, page: Page, picture: bytes | None) -> tuple[tuple[str, ...], ...]:
    """Add the slide of a Page, with its picture, to a presentation; return rows that did not fit.

    Rows of its table that had no room are returned, for the end of the show.
    """
    slide = _add_slide(show, page.heading)
    told = [*page.remark, *([Block((Run(page.finding, True),))] if page.finding else ())]
    told += [*page.body, *([*_sentence_blocks(page)] if page.sentence else ())]
    middle, wide = 3.9, _WIDTH - 2 * _EDGE
    left = page.table.rows if page.table else ()
    if picture is not None:
        left_out = _write_text(slide, told, (_EDGE, 1.45, 4.5, middle))
        _add_picture(slide, picture, page.alt, _FIGURE)
    elif page.table is not None:
        left_out = _write_text(slide, told, (_EDGE, 1.45, wide, 1.25))
        left = _add_table(slide, page.table, (_EDGE, 2.75, wide, middle - 1.3))
    else:
        left_out = _write_text(slide, told, (_EDGE, 1.45, wide, middle))
    rests = _fact_blocks(page)
    doubt = [Block((Run("What this does not show. ", True), *block.runs)) for block in page.caveat]
    for part, below in zip((rests, doubt), _boxes_below(rests, doubt), strict=True):
        left_out += _write_text(slide, part, below, size=_SMALL, colour=_DIM)
    notes = [page.notes, *(["In full:", *left_out] if left_out else ())]
    if any(notes):
        frame = slide.notes_slide.notes_text_frame
        assert frame is not None  # the template has one
        frame.text = "\n".join(filter(None, notes))
    return left


def _boxes_below(rests: Sequence[Block], doubt: Sequence[Block]) -> tuple[Box, Box]:
    """Return the boxes of two texts below a slide's content, split so that both are legible."""
    wide, gap, top, high = _WIDTH - 2 * _EDGE, 0.25, 5.4, 2.0
    texts = [[block_text(block) for block in part] for part in (rests, doubt)]

    def boxes(share: float) -> tuple[Box, Box]:
        """Return the two boxes for a split that gives the first a share of the width."""
        first = wide * share
        return (_EDGE, top, first, high), (_EDGE + first + gap, top, wide - first - gap, high)

    def legible(share: float) -> tuple[bool, float]:
        """Return whether both texts fit at a split, and the smaller of their font sizes."""
        pairs = list(zip(texts, boxes(share), strict=True))
        least = min(largest_font_size(*pair, _SMALL) for pair in pairs)
        return all(fits(*pair, least) for pair in pairs), least

    return boxes(max((0.62, 0.55, 0.66, 0.7, 0.74), key=legible))


def _fact_blocks(page: Page) -> list[Block]:
    """Return the paragraphs of a slide's facts, and of its first command."""
    runs: list[Run] = []
    for name, value in page.shown:
        runs += [Run(f"{name}: ", True), Run(value), Run("   ")]
    told = [Block(tuple(runs[:-1]))] if runs else []
    if page.commands:
        more = len(page.commands) - 1
        rest = [Run(f" (and {more} more: at the end)")] if more else []
        command = Run(page.commands[0], is_code=True)
        told.append(Block((Run("Reproduce it with: ", True), command, *rest)))
    return told


@dataclass(frozen=True)
class _Marked(Run):
    """A coloured run of text in a marked sentence."""

    colour: str = _INK
    is_underlined: bool = False


def _sentence_blocks(page: Page) -> list[Block]:
    """Return a marked sentence and the legend of its marks, as paragraphs."""
    runs = [_marked_run(piece, mark) for piece, mark in page.sentence]
    told: list[Run] = []
    for mark, meaning in page.legend:
        told += [_marked_run(meaning, mark), Run("     ")]
    return [Block(tuple(runs)), *([Block(tuple(told[:-1]))] if told else ())]


def _marked_run(text: str, mark: str) -> Run:
    """Return a run of text in the style of its mark."""
    look = _LOOKS.get(MARKS.get(mark, ""))
    return Run(text) if look is None else _Marked(text, look[1], False, *look[::2])


def _add_appendix(show: Presentation, deck: Deck) -> None:
    """Add the appendix slides to a presentation: facts, limits, questions and commands."""
    wide = (_EDGE, 1.45, _WIDTH - 2 * _EDGE, 5.5)
    facts = [Block((Run(f"{name}: ", True), Run(value))) for name, value in deck.facts]
    limits = [Block((Run(limit),), is_item=True) for limit in deck.limits]
    clauses = [
        Block((Run(f"{clause.source}: ", True), Run(clause.question)), is_item=True)
        for clause in deck.clauses
    ]
    none = Block(
        (
            Run(
                "The figures do not answer these questions, and this report does not state "
                "compliance."
            ),
        )
    )
    commands = [Block((Run(command, is_code=True),)) for command in deck.commands]
    for title, told in (
        ("Data and method", facts),
        ("Limits", limits),
        ("Questions that these figures concern", [none, *clauses]),
        ("Commands", commands),
    ):
        for part in _split_to_slides(told, wide):
            _write_text(_add_slide(show, title), part, wide, size=14)


def _split_to_slides(told: Sequence[Block], box: Box) -> list[list[Block]]:
    """Split paragraphs into groups that each fit a slide's box in a legible font size."""
    parts: list[list[Block]] = []
    for block in told:
        texts = [block_text(each) for each in (*parts[-1], block)] if parts else []
        if parts and fits(texts, box, _EASY):
            parts[-1].append(block)
        else:
            parts.append([block])
    return parts


def _add_slide(show: Presentation, title: str) -> Slide:
    """Add a slide with a title to a presentation, and return it."""
    slide = show.slides.add_slide(show.slide_layouts[5])  # title only
    shape = slide.shapes.title
    assert shape is not None
    box = (_EDGE, 0.35, _WIDTH - 2 * _EDGE, 1.0)
    _set_box(shape, box)
    frame = shape.text_frame
    _fill_frame(frame, [Block((Run(title, True),))], largest_font_size([title], box, 28), _INK)
    return slide


def _write_text(
    slide: Slide,
    told: Sequence[Block],
    box: Box,
    *,
    size: float = _BODY,
    colour: str = _INK,
) -> list[str]:
    """Write paragraphs into a slide's box, shrunk or cut to fit; return all texts if it was cut."""
    if not told:
        return []
    from pptx.util import Inches

    shape = slide.shapes.add_textbox(*(Inches(part) for part in box))
    texts = [block_text(block) for block in told]
    size = largest_font_size(texts, box, size)
    if fits(texts, box, size):
        _fill_frame(shape.text_frame, told, size, colour)
        return []
    _fill_frame(shape.text_frame, truncate_to_fit(texts, box, size), size, colour)
    return texts


def _fill_frame(frame: Any, told: Sequence[Block], size: float, colour: str) -> None:
    """Write paragraphs into a text frame, with their runs' styles."""
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
            own = run.colour if isinstance(run, _Marked) else colour
            written.font.color.rgb = RGBColor.from_string(own)
            written.font.underline = isinstance(run, _Marked) and run.is_underlined


def _add_picture(slide: Slide, picture: bytes, alt: str, box: Box) -> None:
    """Add a picture with alternative text to a slide, as large as its box allows."""
    from pptx.util import Inches

    left, top, width, height = box
    shape = _PICTURE[0] / _PICTURE[1]
    width = min(width, height * shape)
    drawn = slide.shapes.add_picture(
        io.BytesIO(picture), Inches(left), Inches(top), Inches(width), Inches(width / shape)
    )
    drawn._element._nvXxPr.cNvPr.set("descr", alt)


def _add_table(slide: Slide, table: Table, box: Box) -> tuple[tuple[str, ...], ...]:
    """Add a table to a slide with as many rows as fit; return the remaining rows."""
    from pptx.util import Inches, Pt

    left, top, width, height = box
    texts = [[_clip_cell(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = _column_widths(texts, width)
    size = _CELL_SIZE
    while size > LEAST and sum(_row_height(row, widths, size) for row in texts) > height:
        size -= 0.5
    while len(texts) > 2 and sum(_row_height(row, widths, size) for row in texts) > height:
        texts.pop()
    frame = slide.shapes.add_table(
        len(texts), len(table.columns), *(Inches(part) for part in (left, top, width, 0.3))
    )
    for i, part in enumerate(widths):
        frame.table.columns[i].width = Inches(part)
    for i, row in enumerate(texts):
        frame.table.rows[i].height = Inches(_row_height(row, widths, size))
        for j, text in enumerate(row):
            cell = frame.table.cell(i, j)
            cell.margin_top = cell.margin_bottom = Inches(0.03)
            cell.margin_left = cell.margin_right = Inches(0.06)
            cell.text = text
            cell.text_frame.paragraphs[0].font.size = Pt(size)
    return table.rows[len(texts) - 1 :]


def _column_widths(texts: Sequence[Sequence[str]], width: float) -> list[float]:
    """Compute a table's column widths: room for the longest words, then shared by text length."""
    columns = list(zip(*texts, strict=True))
    words = [max(len(word) for text in column for word in text.split(" ")) for column in columns]
    least = [LETTER * _CELL_SIZE * n + INSET for n in words]
    longer = [min(max(map(len, texts)), 60) - n for texts, n in zip(columns, words, strict=True)]
    wanted = [1 + max(n, 0) for n in longer]
    spare = max(width - sum(least), 0.0)
    asked = [a + spare * b / sum(wanted) for a, b in zip(least, wanted, strict=True)]
    return [width * part / sum(asked) for part in asked]


def _clip_cell(cell: str) -> str:
    """Return a table cell's text in one line, cut to the maximum length."""
    line = _IN_INTERVAL.sub(",\u00a0", " ".join(cell.split()))
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"


def _row_height(row: Sequence[str], widths: Sequence[float], size: float) -> float:
    """Return the height of a table row in inches."""
    n = max(count_lines(text, w - 0.15, size) for text, w in zip(row, widths, strict=True))
    return n * size * SPACING / 72 + 0.08


def _set_box(shape: Any, box: Box) -> None:
    """Set a shape's position and size to a box."""
    from pptx.util import Inches

    shape.left, shape.top, shape.width, shape.height = (Inches(part) for part in box)
