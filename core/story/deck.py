"""Build the slides of a report from a story's pins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from leakscope.core import __version__
from leakscope.core.audit.summary import AuditSummary
from leakscope.core.errors import CoreError
from leakscope.core.findings.audit import audit_slide
from leakscope.core.findings.drawing import short_legend
from leakscope.core.findings.finding import OPENS, RESTS_ON, WEAKER, YEARS, Fact, Finding, Table
from leakscope.core.findings.prose import Block, parse_blocks, plain_blocks
from leakscope.core.findings.registry import VIEWS, build_view
from leakscope.core.findings.shared import encoder_facts, installed_versions
from leakscope.core.pages import PAGES
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.thinning import thin_figures


@dataclass(frozen=True)
class Clause:
    """A question of a rule, and its source.

    Attributes
    ----------
    source : str
        The document with its edition and date, and the place in it: lists are renumbered.
    question : str
    """

    source: str
    question: str


_GDPR = "GDPR, Regulation (EU) 2016/679 of 27 April 2016"

CLAUSES = (
    Clause(
        f"{_GDPR}, Article 32 (security of processing)",
        "If stored vectors leak their texts to this degree, are they protected like the texts: by "
        "encryption, access control and retention limits?",
    ),
    Clause(
        f"{_GDPR}, Articles 33 and 34 (breaches)",
        "If only vectors were stolen, what could an attacker learn about whom, and how likely is a "
        "risk to these people?",
    ),
    Clause(
        f"{_GDPR}, Article 35 (impact assessment)",
        "Which attackers were considered, with what access, and which risk remains after the "
        "chosen measures?",
    ),
    Clause(
        "EDPB, Opinion 28/2024 on AI models, 17 December 2024 (means reasonably likely to be used)",
        "Do the access, time and cost stated beside each figure belong to these means?",
    ),
    Clause(
        "OWASP Top 10 for LLM Applications, vector and embedding weaknesses: LLM08 in the 2025 "
        "list (18 November 2024), LLM09 in the 2026 list (3 August 2026)",
        "Is embedding inversion among the threats, and is it tested with attackers who know the "
        "defence?",
    ),
    Clause(
        "OWASP AISVS 1.0 (24 June 2026), requirements 8.2.1, 8.3.1 and 11.2.1 to 11.2.5",
        "Which requirements could the measurements support or contradict?",
    ),
    Clause(
        "MITRE ATLAS v2026.07 (July 2026), AML.T0024.000 (infer training data membership), "
        "AML.T0024.001 (invert AI model), AML.T0057 (LLM data leakage) and AML.T0085.000 (data "
        "from AI services: RAG databases)",
        "Are these techniques in the threat model, and does a figure here measure one of them?",
    ),
)


DRAWN = "Drawn"
"""Name of the fact that states how many points of a figure are drawn, if not all."""

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
"""Style class of each outcome of a piece of a sentence."""

_BEHIND = ("Odds", "Guarantee", "Utility", "Measured", "Versions", WEAKER, YEARS)
"""Facts shown only in the appendix."""

_MOST_BESIDE, _MOST_ABOVE = 600, 1150
"""Maximum number of letters beside a figure, and above a table."""
_MOST_ASKED = 40
"""Maximum number of letters of a quoted text parameter."""

_LIMITS = (
    "The figures hold for these attackers, these texts and this encoder: a lower bound on what "
    "leaks.",
    "An interval covers the sampling error, not attackers that were not tried.",
    "A mechanism guarantees a ratio of odds; what was only measured guarantees nothing.",
    "Questions of law are listed as questions. This report does not answer them.",
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """One slide, ready to be rendered.

    Attributes
    ----------
    heading, finding : str
        The heading, and the view's own finding if the author replaced it by another heading.
    remark : list of Block
        The author's remark.
    legend : tuple of (str, str)
        Marks used in the sentence, and their meaning.
    live : str
        The address of the view, from the root of the pages; empty if it cannot be opened.
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
        """The page and the parameters that open the slide's view live, in words."""
        asked = parse_qsl(self.live.partition("?")[2])
        told = ", ".join(f"{name} {_quote_short(value)}" for name, value in asked)
        return f"{self.page} ({told})" if told else self.page

    @property
    def is_long(self) -> bool:
        """Whether the slide's text, or its table, needs a smaller font."""
        n = sum(len(block.text) for block in (*self.remark, *self.body))
        n += len(self.heading) + len(self.finding)
        if self.figure is None and self.table is not None:
            n += sum(len(cell) for row in self.table.rows for cell in row)
            return n > _MOST_ABOVE
        return n > _MOST_BESIDE

    @property
    def shown(self) -> tuple[Fact, ...]:
        """The facts shown on the slide itself, without those for the appendix.

        A slide that measures nothing shows none; its text says so.
        """
        if dict(self.facts).get("Data", "").startswith("none"):
            return tuple(f for f in self.facts if f[0] not in (*_BEHIND, *RESTS_ON))
        return tuple(fact for fact in self.facts if fact[0] not in _BEHIND)


@dataclass(frozen=True, kw_only=True)
class Deck:
    """All contents of a report.

    Attributes
    ----------
    date : str
        Today's date, as `2026-03-01`.
    made_with : str
        Versions of Python and of the libraries that are installed here.
    is_one_page : bool
        Whether it is one slide without a cover and an appendix.
    facts : tuple of (str, str)
        The facts of all slides, each listed once.
    """

    title: str
    audience: str
    minutes: int
    date: str
    pages: tuple[Page, ...]
    lacks: tuple[str, ...]
    version: str = __version__
    made_with: str = field(default_factory=installed_versions)
    limits: tuple[str, ...] = _LIMITS
    clauses: tuple[Clause, ...] = CLAUSES
    is_one_page: bool = False

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts (name, text) merged over all slides, with versions and the encoder."""
        own = (("Leakscope", self.version), ("Written with", self.made_with), *encoder_facts())
        return (*own, *_merge_facts(f for page in self.pages for f in page.facts))

    @property
    def commands(self) -> tuple[str, ...]:
        """The distinct commands that reproduce the figures."""
        return tuple(dict.fromkeys(c for page in self.pages for c in page.commands))


def _quote_short(value: str) -> str:
    """Shorten a URL parameter's value; put it in quotation marks if it contains a space."""
    if " " not in value:
        return value
    return f"“{value if len(value) <= _MOST_ASKED else f'{value[:_MOST_ASKED]}…'}”"


def _merge_facts(found: Iterable[Fact]) -> list[Fact]:
    """Merge (name, text) facts with the same name, joining their distinct texts."""
    merged: dict[str, dict[str, None]] = {}
    for name, value in found:
        merged.setdefault(name, {})[value] = None
    told = {name: [v for v in found if not _is_none(name, v)] for name, found in merged.items()}
    return [(name, "; ".join(values)) for name, values in told.items() if values]


def _is_none(name: str, value: str) -> bool:
    """Return whether a fact's text only says that there is nothing, such as "none"."""
    return value == "none" or (name == "Data" and value.startswith("none:"))


def today() -> str:
    """Return today's date as `2026-03-01`."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def make_deck(
    story: Story,
    date: str,
    *,
    build: Callable[[str, Mapping[str, str]], Finding] = build_view,
    is_one_page: bool = False,
) -> Deck:
    """Build a story's slides as a Deck, computing findings that the story does not store.

    A view that this version lacks, or whose rows are missing, becomes a slide that says so.

    Parameters
    ----------
    build : callable
        Builds a view's finding from the rows; a server passes a cached function.
    is_one_page : bool
        Whether it is a single slide without cover and appendix.
    """
    lacks = list(story.lacks)
    pages = []
    for i, pin in enumerate(story.pins):
        try:
            slide = (pin.slide or build(pin.shows, dict(pin.parameters))).with_plain_figure()
        except CoreError as error:
            lacks.append(f"Slide {i + 1} cannot be shown: {error}")
            slide = Finding(title="This view cannot be shown here", body="", caveat="")
        pages.append(_build_page(pin, slide))
    drawn = thin_figures([page.figure for page in pages])
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
        is_one_page=is_one_page,
    )


def _build_page(pin: Pin, slide: Finding) -> Page:
    """Build a slide (Page) from a pin and its finding."""
    table = slide.table if slide.table and slide.table.columns and slide.table.rows else None
    seen = dict.fromkeys(mark for _, mark in slide.sentence if mark in MARKS)
    return Page(
        page=PAGES[pin.page].title if pin.page in PAGES else pin.page,
        heading=pin.heading or slide.title,
        finding=slide.title if pin.heading else "",
        remark=plain_blocks(pin.remark),
        body=parse_blocks(slide.body),
        notes=pin.notes,
        sentence=slide.sentence,
        legend=tuple((mark, mark) for mark in seen),
        figure=slide.figure and short_legend(slide.figure),
        alt=slide.alt,
        table=table,
        facts=tuple(fact for fact in slide.facts if fact[0] != OPENS),
        caveat=parse_blocks(slide.caveat),
        commands=slide.commands,
        live=live_address(pin, slide.live),
        opens=dict(slide.facts).get(OPENS, ""),
    )


def live_address(pin: Pin, parameters: Sequence[Fact] = ()) -> str:
    """Return the URL path where a pin opens live, such as `/tradeoff?task=TREC`; "" for none.

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


def audit_deck(found: AuditSummary, *, with_words: bool = False) -> Deck:
    """Build the one-page report of an audit from its summary, as a Deck."""
    slide = audit_slide(found, with_words=with_words)
    pin = Pin(page="audit", slide=slide, is_live=False)
    story = Story(title="What leaks from your own vectors", pins=(pin,))
    return make_deck(story, found.date, is_one_page=True)
