"""From pins to what every file and every screen shows: slides in words, figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from core import __version__
from core.errors import CoreError
from core.story.clauses import CLAUSES, Clause
from core.story.drawing import short_legend
from core.story.format import OPENS, PAGES, RESTS_ON, WEAKER, YEARS, Fact, Pin, Slide, Story, Table
from core.story.prose import Block, blocks, plain_blocks
from core.story.thinning import thinned
from core.story.versions import encoder_facts, made_with
from core.story.views import VIEWS, told

__all__ = ["DRAWN", "MARKS", "Deck", "Page", "live_address", "make_deck", "today"]

DRAWN = "Drawn"
"""The fact that says how many points of a figure are drawn, where that is not all of them."""

MARKS: Mapping[str, str] = {
    "recovered": "hit",
    "missed": "miss",
    "outside the attack's vocabulary, not scored": "unknown",
    "stop word, not scored": "stop",
    "beyond what the encoder reads, not tested": "stop",
    "came back unchanged": "hit",
    "changed": "miss",
    "wrong guess": "wrong",
}
"""What became of a piece of a sentence, and how it is marked."""

_BEHIND = ("Odds", "Promise", "Usefulness", "Measured", "Versions", WEAKER, YEARS)
"""Facts that stand in the appendix alone."""

_MOST_BESIDE, _MOST_ABOVE = 600, 1150
"""Letters that a slide has room for beside its figure, and with its table."""
_MOST_ASKED = 40
"""Letters of a text that is asked for, where it is named."""

_LIMITS = (
    "Figures are of these attackers, these texts and this encoder: a lower bound on what leaks.",
    "An interval tells the doubt of the sample, not of attackers that were not tried.",
    "A promise of a mechanism is a ratio of odds; what was only measured promises nothing.",
    "Questions of law are named as questions. Nothing here says that any is answered.",
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A slide that is ready to be drawn.

    Attributes
    ----------
    heading, finding : str
        What stands largest, and the view's own finding where the author put another above it.
    remark : list of Block
        Of the author.
    legend : tuple of (str, str)
        Marks that the sentence holds, and what they mean.
    live : str
        The address of the view, from the root of the pages; empty where it cannot be opened.
    opens : str
        What else the page shows there, or why it cannot be opened, in words.
    """

    page: str
    heading: str
    finding: str
    remark: list[Block]
    body: list[Block]
    notes: str
    sentence: tuple[tuple[str, str], ...]
    legend: tuple[tuple[str, str], ...]
    figure: Mapping[str, Any] | None
    alt: str
    table: Table | None
    facts: tuple[Fact, ...]
    caveat: list[Block]
    commands: tuple[str, ...]
    live: str
    opens: str = ""

    @property
    def place(self) -> str:
        """Where it is seen live, as people read it: a page, and what to choose there."""
        asked = parse_qsl(self.live.partition("?")[2])
        told = ", ".join(f"{name} {_shortened(value)}" for name, value in asked)
        return f"{self.page} ({told})" if told else self.page

    @property
    def is_long(self) -> bool:
        """Whether its words, and its table where no figure is drawn, need smaller letters."""
        n = sum(len(block.text) for block in (*self.remark, *self.body))
        n += len(self.heading) + len(self.finding)
        if self.figure is None and self.table is not None:
            n += sum(len(cell) for row in self.table.rows for cell in row)
            return n > _MOST_ABOVE
        return n > _MOST_BESIDE

    @property
    def shown(self) -> tuple[Fact, ...]:
        """The facts that stand on the slide itself, without those of the appendix alone.

        Of a slide that measures nothing there are none: its words say so.
        """
        if dict(self.facts).get("Data", "").startswith("none"):
            return tuple(f for f in self.facts if f[0] not in (*_BEHIND, *RESTS_ON))
        return tuple(fact for fact in self.facts if fact[0] not in _BEHIND)


@dataclass(frozen=True, kw_only=True)
class Deck:
    """All that a report holds.

    Attributes
    ----------
    date : str
        Of today, as `2026-03-01`.
    made_with : str
        Versions of Python and of the libraries that are installed here.
    facts : tuple of (str, str)
        What all slides rest on, each told once.
    """

    title: str
    audience: str
    minutes: int
    date: str
    pages: tuple[Page, ...]
    lacks: tuple[str, ...]
    version: str = __version__
    made_with: str = field(default_factory=made_with)
    limits: tuple[str, ...] = _LIMITS
    clauses: tuple[Clause, ...] = CLAUSES

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Versions, data, attackers, access, cost and origin, each told once."""
        own = (("Leakscope", self.version), ("Written with", self.made_with), *encoder_facts())
        return (*own, *_once(f for page in self.pages for f in page.facts))

    @property
    def commands(self) -> tuple[str, ...]:
        """What repeats the figures, each once."""
        return tuple(dict.fromkeys(c for page in self.pages for c in page.commands))


def _shortened(value: str) -> str:
    """Return what is asked for in as few words as a line has room for, a text as a quotation."""
    if " " not in value:
        return value
    return f"“{value if len(value) <= _MOST_ASKED else f'{value[:_MOST_ASKED]}…'}”"


def _once(found: Iterable[Fact]) -> list[Fact]:
    merged: dict[str, dict[str, None]] = {}
    for name, value in found:
        merged.setdefault(name, {})[value] = None
    told = {name: [v for v in found if not _is_none(name, v)] for name, found in merged.items()}
    return [(name, "; ".join(values)) for name, values in told.items() if values]


def _is_none(name: str, value: str) -> bool:
    """Return whether a fact says that there is nothing; why no interval is told stays."""
    return value == "none" or (name == "Data" and value.startswith("none:"))


def today() -> str:
    """Return the date that stands on a report, such as `2026-03-01`."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def make_deck(
    story: Story, date: str, *, tell: Callable[[str, Mapping[str, str]], Slide] = told
) -> Deck:
    """Return the slides of a story, those told from rows read now.

    A view that this version does not have, or whose rows are missing, leaves a slide that says so.

    Parameters
    ----------
    tell : callable
        Tells a view from the rows; a server keeps what it has told.
    """
    lacks = list(story.lacks)
    pages = []
    for i, pin in enumerate(story.pins):
        try:
            slide = pin.slide or tell(pin.shows, dict(pin.parameters))
        except CoreError as error:
            lacks.append(f"Slide {i + 1} cannot be shown: {error}")
            slide = Slide(title="This view cannot be shown here", body="", caveat="")
        pages.append(_page(pin, slide))
    drawn = thinned([page.figure for page in pages])
    return Deck(
        title=story.title,
        audience=story.audience,
        minutes=story.minutes,
        date=date,
        pages=tuple(
            replace(page, figure=figure, facts=(*page.facts, *(((DRAWN, told),) if told else ())))
            for page, (figure, told) in zip(pages, drawn, strict=True)
        ),
        lacks=tuple(lacks),
    )


def _page(pin: Pin, slide: Slide) -> Page:
    table = slide.table if slide.table and slide.table.columns and slide.table.rows else None
    seen = dict.fromkeys(mark for _, mark in slide.sentence if mark in MARKS)
    return Page(
        page=PAGES.get(pin.page, pin.page),
        heading=pin.heading or slide.title,
        finding=slide.title if pin.heading else "",
        remark=plain_blocks(pin.remark),
        body=blocks(slide.body),
        notes=pin.notes,
        sentence=slide.sentence,
        legend=tuple((mark, mark) for mark in seen),
        figure=slide.figure and short_legend(slide.figure),
        alt=slide.alt,
        table=table,
        facts=tuple(fact for fact in slide.facts if fact[0] != OPENS),
        caveat=blocks(slide.caveat),
        commands=slide.commands,
        live=live_address(pin, slide.live),
        opens=dict(slide.facts).get(OPENS, ""),
    )


def live_address(pin: Pin, parameters: Sequence[Fact] = ()) -> str:
    """Return where a pin opens live, such as `/tradeoff?task=TREC`; empty where nowhere.

    Parameters
    ----------
    parameters : sequence of (str, str)
        Those of the page that show the same; the pin's own where there are none.
    """
    page = VIEWS[pin.shows].page if pin.shows in VIEWS else pin.page
    if page not in PAGES or not pin.is_live:
        return ""
    kept = parameters or pin.parameters
    place = "/" if page == "overview" else f"/{page}"  # which is where the pages begin
    return place + (f"?{urlencode(kept)}" if kept else "")
