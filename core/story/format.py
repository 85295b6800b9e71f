"""What a story is: pins in an order, each a view as it was, or one told from rows anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["KIND", "OPENS", "PAGES", "RESTS_ON", "VERSION", "Fact", "Pin", "Slide", "Story",
           "Table", "UNMEASURED", "WEAKER", "YEARS", "facts_of_none"]  # fmt: skip

KIND = "leakscope-story"
VERSION = 1
"""Of the file: raised where a former reader would not understand what is written today."""

PAGES: Mapping[str, str] = {
    "overview": "Overview",
    "inversion": "Inversion",
    "names": "Names",
    "projection": "Map",
    "representations": "Representations",
    "attributes": "Attributes",
    "membership": "Membership",
    "memorisation": "Memorisation",
    "deniability": "Deniability",
    "tradeoff": "Trade-off",
    "training": "Training",
    "glossary": "Glossary",
}
"""Pages that can be pinned, as people read them."""

Fact = tuple[str, str]
"""What a number rests on: a name such as `Attacker`, and what is told of it."""

RESTS_ON = ("Data", "n", "Interval", "Attacker", "Access", "Cost")
"""The facts that every view has, or says of them that there are none."""

OPENS = "Opened live"
"""The fact that says what else the page shows where a pin opens live, or why it does not."""

WEAKER = "Weaker results, on the page alone"
"""The fact that says of a table in the appendix what is not in it."""

YEARS = "Where classes are years"
"""The fact that says why what is told by year makes no headline."""


def facts_of_none(why: str) -> tuple[Fact, ...]:
    """Return the facts of what measures nothing; `why` stands in the place of the data."""
    rest = dict.fromkeys(RESTS_ON[1:], "none")
    return tuple({"Data": why, **rest, "Attacker": "none: nothing is attacked"}.items())


UNMEASURED = facts_of_none("none: nothing was measured yet")
"""The facts of a page whose rows do not ship."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a few columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class Slide:
    """What a view says.

    Attributes
    ----------
    title : str
        The finding in one sentence.
    body : str
        What it rests on, as Markdown of the house (`core.story.prose`).
    sentence : tuple of (str, str)
        A marked sentence: pieces, and what became of each; empty where none is shown.
    figure : dict or None
        As Plotly reads it (`core.story.drawing`).
    alt : str
        What is to be seen in the figure, in words.
    table : Table or None
    facts : tuple of (str, str)
        n, interval, attacker, access, cost, data, and when it was measured.
    caveat : str
        What it does not say.
    commands : tuple of str
        What repeats it.
    live : tuple of (str, str)
        With which parameters its page shows the same, where the pin's own are not the page's; told
        anew with the slide, and so in no file.
    """

    title: str
    body: str = ""
    sentence: tuple[tuple[str, str], ...] = ()
    figure: Mapping[str, Any] | None = None
    alt: str = ""
    table: Table | None = None
    facts: tuple[Fact, ...] = ()
    caveat: str = ""
    commands: tuple[str, ...] = ()
    live: tuple[Fact, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form, without what is empty."""
        told = {
            "title": self.title,
            "body": self.body,
            "sentence": [list(piece) for piece in self.sentence],
            "figure": self.figure,
            "alt": self.alt,
            "table": None if self.table is None else self.table.to_dict(),
            "facts": [list(fact) for fact in self.facts],
            "caveat": self.caveat,
            "commands": list(self.commands),
        }
        return {name: value for name, value in told.items() if value}


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A view in a story.

    Attributes
    ----------
    page : str
        Where it opens live.
    parameters : tuple of (str, str)
        Of its address there.
    shows : str
        A view of `core.story.views` that is told from rows anew; empty where `slide` holds what
        was seen.
    heading : str
        Instead of the finding, where the author says so.
    remark : str
        Of the author, below the heading.
    notes : str
        For the speaker alone.
    slide : Slide or None
        What was seen when it was pinned.
    is_live : bool
        No where no address shows it again, as of a file of one's own.
    """

    page: str
    parameters: tuple[tuple[str, str], ...] = ()
    shows: str = ""
    heading: str = ""
    remark: str = ""
    notes: str = ""
    slide: Slide | None = None
    is_live: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form, without what is empty."""
        told = {
            "page": self.page,
            "parameters": [list(each) for each in self.parameters],
            "shows": self.shows,
            "heading": self.heading,
            "remark": self.remark,
            "notes": self.notes,
            "slide": None if self.slide is None else self.slide.to_dict(),
        }
        kept = {name: value for name, value in told.items() if value}
        return kept if self.is_live else {**kept, "is_live": False}


@dataclass(frozen=True, kw_only=True)
class Story:
    """Pins in the order in which they are told.

    Attributes
    ----------
    audience : str
        For whom, in a few words.
    minutes : int
        That telling it takes; 0 where nobody said.
    lacks : tuple of str
        What the file asked for and this version does not have, in sentences.
    """

    title: str
    audience: str = ""
    minutes: int = 0
    pins: tuple[Pin, ...] = ()
    lacks: tuple[str, ...] = field(default=(), compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form, which `core.story.reading` reads."""
        return {
            "kind": KIND,
            "version": VERSION,
            "title": self.title,
            "audience": self.audience,
            "minutes": self.minutes,
            "pins": [pin.to_dict() for pin in self.pins],
        }
