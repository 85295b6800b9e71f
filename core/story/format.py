"""Data model of a story: pins in order, each a stored finding or one to be recomputed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from leakscope.core.findings.finding import Finding

KIND = "leakscope-story"
VERSION = 1
"""Version of the file format, raised when older readers would not understand it."""


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One view in a story, with the author's heading, remark and notes.

    Attributes
    ----------
    page : str
        The page on which it opens live.
    parameters : tuple of (str, str)
        Query parameters of its address.
    shows : str
        A view of `leakscope.core.findings.registry` that is recomputed from rows; empty if
        `slide` stores a finding.
    heading : str
        The author's heading, replacing the finding.
    remark : str
        The author's remark, below the heading.
    notes : str
        Speaker notes.
    slide : Finding or None
        The finding as stored when it was pinned.
    is_live : bool
        False if no address shows it again, such as for a user's own file.
    """

    page: str
    parameters: tuple[tuple[str, str], ...] = ()
    shows: str = ""
    heading: str = ""
    remark: str = ""
    notes: str = ""
    slide: Finding | None = None
    is_live: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the pin as a dictionary that JSON can hold, without empty fields."""
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
    """A titled sequence of pins.

    Attributes
    ----------
    audience : str
        Intended audience, in a few words.
    minutes : int
        Duration of the presentation; 0 if unknown.
    lacks : tuple of str
        Sentences on parts of the file that this version does not support.
    """

    title: str
    audience: str = ""
    minutes: int = 0
    pins: tuple[Pin, ...] = ()
    lacks: tuple[str, ...] = field(default=(), compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the story as a dictionary that JSON can hold; `story_from_data` reads it."""
        return {
            "kind": KIND,
            "version": VERSION,
            "title": self.title,
            "audience": self.audience,
            "minutes": self.minutes,
            "pins": [pin.to_dict() for pin in self.pins],
        }
