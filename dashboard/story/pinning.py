"""Pins a view as it is: its finding as it was drawn, its figure, and what the number rests on.

What a visitor typed is left out, unless they choose to have it in the story.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from core.errors import CoreError
from core.story.caveats import CAVEATS
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import Fact, Pin, Slide, Table
from core.story.prose import spoken
from dashboard.address import Query
from dashboard.calm import plain
from dashboard.downloads import place_of_pins
from dashboard.state import is_presenting, picked
from dashboard.story import state
from dashboard.terms import help_of

__all__ = ["Noted", "Seen", "note_figure", "story_button"]

_TYPED = {"text", "names", "canary"}
"""Parameters of addresses that hold what somebody typed."""

_ASKED = "_story_asked"
"""Which page is to be pinned, and whether with what was typed: until that page is drawn."""

_WITH, _WITHOUT = "With what I typed", "Numbers alone"


class Noted:
    """A container that notes the finding which a page draws into it."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot
        self.heading = ""
        self.lines: list[str] = []
        self.figure: Callable[[], go.Figure] | None = None
        self.alt = ""

    def title(self, body: str, **options: Any) -> Any:
        """Draw the heading."""
        self.heading = body
        return self.slot.title(body, **options)

    def markdown(self, body: str, **options: Any) -> Any:
        """Draw a paragraph, with what its words mean where the page uses them first."""
        self.lines.append(body)
        options.setdefault("help", help_of(body))
        return self.slot.markdown(body, **options)

    def info(self, body: str, **options: Any) -> Any:
        """Draw what should not be missed."""
        self.lines.append(body)
        return self.slot.info(body, **options)

    def warning(self, body: str, **options: Any) -> Any:
        """Draw what bounds the finding."""
        self.lines.append(body)
        return self.slot.warning(body, **options)

    def caption(self, body: str, **options: Any) -> Any:
        """Draw what the finding rests on, with what its words mean."""
        self.lines.append(body)
        options.setdefault("help", help_of(body))
        return self.slot.caption(body, **options)

    def below(self, slot: Any) -> Noted:
        """Return what draws into another place and notes it as more of the same finding."""
        more = Noted(slot)
        more.lines = self.lines
        return more

    def __getattr__(self, name: str) -> Any:
        return getattr(self.slot, name)

    def __enter__(self) -> Any:
        return self.slot.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        return self.slot.__exit__(*raised)


def note_figure(slot: Any, figure: Callable[[], go.Figure], alt: str) -> None:
    """Note the figure that belongs to a finding, where the slot of that finding takes notes."""
    if isinstance(slot, Noted):
        slot.figure, slot.alt = figure, alt


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a page shows beside its finding; made when it is pinned, and not before.

    Attributes
    ----------
    figure : Figure or None
    facts : iterable of (str, str)
        n, interval, attacker, access, cost, data, origin.
    commands : iterable of str
        Commands, or names of tables of docs/results.
    """

    figure: go.Figure | None = None
    alt: str = ""
    table: Table | None = None
    sentence: tuple[tuple[str, str], ...] = ()
    facts: Iterable[Fact] = ()
    commands: Iterable[str] = ()


def story_button(
    page: str,
    query: Query,
    headline: Noted,
    see: Callable[[bool], Seen],
    *,
    has_typed: bool = False,
) -> None:
    """Draw the button that pins the view as it is, once its finding is drawn.

    It is pinned by the run that the click began, and not from what the run before it had drawn:
    a control that was moved just before counts.

    Parameters
    ----------
    query : list of (str, str)
        What opens the view again.
    see : callable
        Given whether what was typed may be in the story, returns what is seen.
    has_typed : bool
        The view is of something typed: the visitor says whether it may be in the story.
    """
    asked = st.session_state.pop(_ASKED, None)
    if is_presenting() or not headline.heading:
        return
    if asked is not None and asked[0] == page:  # not what was asked for on a page that was left
        _pin(page, query, headline, see, with_typed=asked[1])
    key, place = f"add-to-story-{page}", place_of_pins()
    n = len(state.placed())
    about = f"Pins this view as it is now: finding, figure, and what it rests on. {n} pinned."
    common: dict[str, Any] = {
        "key": key,
        "icon": ":material/keep:",
        "disabled": state.is_full(),
        "on_click": _ask,
        "args": (page, key * has_typed),
    }
    if has_typed:
        place.menu_button(
            "Add to story",
            [_WITHOUT, _WITH],
            help=f"{about} What you typed is in it only if you say so.",
            **common,
        )
    else:
        place.button("Add to story", help=about, **common)


def _ask(page: str, menu: str) -> None:
    """Note that a view is to be pinned, in the callback of its button."""
    chosen = picked(menu) if menu else None
    if menu and chosen not in (_WITH, _WITHOUT):  # a menu that a run of the page closed
        return
    st.session_state[_ASKED] = (page, chosen == _WITH)


def _pin(
    page: str,
    query: Query,
    headline: Noted,
    see: Callable[[bool], Seen],
    *,
    with_typed: bool,
) -> None:
    """Pin a view as it has just been drawn."""
    try:
        seen = see(with_typed)
        drawn = headline.figure() if seen.figure is None and headline.figure else seen.figure
        figure = None if drawn is None else plain_figure(drawn)
    except CoreError as error:
        st.toast(f"It was not pinned: {error}", icon=":material/error:")
        return
    kept = query if with_typed else [each for each in query if each[0] not in _TYPED]
    slide = Slide(
        title=spoken(headline.heading),
        body="\n\n".join(headline.lines),
        sentence=seen.sentence,
        figure=figure,
        alt=seen.alt or headline.alt,
        table=seen.table,
        facts=tuple(seen.facts),
        caveat=CAVEATS.get(page, ""),
        commands=tuple(map(command_of, seen.commands)),
    )
    state.add(Pin(page=page, parameters=tuple(kept), slide=slide))
    st.toast(f"Pinned. The page Story holds it: {plain(slide.title)}", icon=":material/keep:")
