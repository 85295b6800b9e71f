"""Pins a view as it is: its finding as it was drawn, its figure, and what the number rests on.

What a visitor typed is left out, unless they choose to have it in the story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from core.errors import CoreError
from core.story.caveats import CAVEATS
from core.story.commands import command_of
from core.story.drawing import plain_figure
from core.story.format import OPENS, Fact, Pin, Slide, Table
from core.story.prose import spoken
from dashboard.address import Query
from dashboard.calm import plain
from dashboard.downloads import place_of_pins
from dashboard.state import is_presenting, picked
from dashboard.story import state
from dashboard.terms import help_of

__all__ = [
    "EXAMPLE",
    "NOTHING_REPEATS",
    "OWN_FILE",
    "OWN_ROWS",
    "Noted",
    "Seen",
    "note_figure",
    "story_button",
]

_TYPED = {"text", "names", "canary", "search"}
"""Parameters of addresses that hold what somebody typed."""

_ASKED = "_story_asked"
"""Which page is to be pinned, and whether with what was typed: until that page is drawn."""

_WITH, _WITHOUT = "With what I typed", "Numbers alone"

EXAMPLE = "with the example of the page, since what was typed is not in the story"
"""How a view of something typed opens where that was left out."""
OWN_FILE = "not possible: a file of one's own is in no address"
"""Why a view of an upload does not open."""
OWN_ROWS = "not possible: a study of one's own is in no address"
"""Why a view of rows that were brought does not open."""
NOTHING_REPEATS = "none: a file of one's own"
"""Instead of a command, for what no command repeats."""


class Noted:
    """A container that notes the finding which a page draws into it."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot
        self.heading = ""
        self.lines: list[str] = []
        self.typed: list[str] = []
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

    def typed_caption(self, body: str) -> Any:
        """Draw what holds something that was typed: in a story where the visitor says so."""
        self.typed.append(body)
        return self.caption(body)

    @classmethod
    def undrawn(cls) -> Noted:
        """Return what notes a finding and draws it nowhere."""
        return cls(_Nowhere())

    def below(self, slot: Any) -> Noted:
        """Return what draws into another place and notes it as more of the same finding."""
        more = Noted(slot)
        more.lines, more.typed = self.lines, self.typed
        return more

    def __getattr__(self, name: str) -> Any:
        return getattr(self.slot, name)

    def __enter__(self) -> Any:
        return self.slot.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        return self.slot.__exit__(*raised)


class _Nowhere:
    """Takes what is drawn into it, and draws nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


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
    more : iterable of str
        Paragraphs that stand below the finding, of what the page shows elsewhere.
    facts : iterable of (str, str)
        n, interval, attacker, access, cost, data, origin.
    commands : iterable of str
        Commands, or names of tables of docs/results.
    headline : Noted or None
        The finding instead of the page's own, where that holds what may not be in the story.
    instead : mapping
        Words that may not be in the story, and what stands for them.
    withheld : iterable of str
        Further parameters of the address that hold what was typed.
    opens : str
        What the page shows when the pin is opened, where that is not the same.
    is_live : bool
        No where no address shows it again; `opens` says why.
    """

    figure: go.Figure | None = None
    alt: str = ""
    table: Table | None = None
    sentence: tuple[tuple[str, str], ...] = ()
    more: Iterable[str] = ()
    facts: Iterable[Fact] = ()
    commands: Iterable[str] = ()
    headline: Noted | None = None
    instead: Mapping[str, str] = field(default_factory=dict)
    withheld: Iterable[str] = ()
    opens: str = ""
    is_live: bool = True


def story_button(
    page: str,
    query: Query,
    headline: Noted,
    see: Callable[[bool], Seen],
    *,
    has_typed: bool | None = None,
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
    has_typed : bool or None
        The view is of something typed or uploaded: the visitor says whether it may be in the story.
        False where it could be and is an example. None where it shows nothing of the kind, so that
        no address needs to hold it.
    """
    asked = st.session_state.pop(_ASKED, None)
    if is_presenting() or not headline.heading:
        return
    if asked is not None and asked[0] == page:  # not what was asked for on a page that was left
        may_tell = asked[1] if has_typed else has_typed is not None
        _pin(page, query, headline, see, with_typed=may_tell, is_left_out=bool(has_typed))
    key, place = f"add-to-story-{page}", place_of_pins()
    n = len(state.placed())
    about = f"Pins this view as it is now: finding, figure, and what it rests on. {n} pinned."
    common: dict[str, Any] = {
        "key": key,
        "icon": ":material/keep:",
        "disabled": state.is_full(),
        "on_click": _ask,
        "args": (page, key * bool(has_typed)),
    }
    if has_typed:
        place.menu_button(
            "Add to story",
            [_WITHOUT, _WITH],
            help=f"{about} What you typed, and what your file names, is in it only if you say so.",
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
    is_left_out: bool,
) -> None:
    """Pin a view as it has just been drawn."""
    try:
        seen = see(with_typed)
        drawn = headline.figure() if seen.figure is None and headline.figure else seen.figure
        figure = None if drawn is None else plain_figure(drawn)
    except CoreError as error:
        st.toast(f"It was not pinned: {error}", icon=":material/error:")
        return
    told = seen.headline or headline
    is_other = is_left_out and not with_typed and seen.is_live
    opens = "; ".join(filter(None, (EXAMPLE * is_other, seen.opens)))
    slide = Slide(
        title=spoken(told.heading),
        body="\n\n".join(
            [*(b for b in told.lines if with_typed or b not in told.typed), *seen.more]
        ),
        sentence=seen.sentence,
        figure=figure,
        alt=seen.alt or headline.alt,
        table=seen.table,
        facts=(*seen.facts, *(((OPENS, opens),) if opens else ())),
        caveat=CAVEATS.get(page, ""),
        commands=tuple(map(command_of, seen.commands)),
    )
    if seen.instead:
        slide = _without(slide, seen.instead)
    left_out = {*seen.withheld, *(() if with_typed else _TYPED)}
    kept = [each for each in query if seen.is_live and each[0] not in left_out]
    state.add(Pin(page=page, parameters=tuple(kept), slide=slide, is_live=seen.is_live))
    st.toast(f"Pinned. The page Story holds it: {plain(slide.title)}", icon=":material/keep:")


def _without(slide: Slide, instead: Mapping[str, str]) -> Slide:
    """Return a slide with other words in the place of some, wherever these stand in it."""
    words = {form: new for old, new in instead.items() for form in (old, plain(old))}
    ranked = sorted(filter(None, words), key=len, reverse=True)
    found = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in ranked))

    def told(value: Any) -> Any:
        if isinstance(value, str):
            return found.sub(lambda match: words[match[0]], value) if ranked else value
        if isinstance(value, Mapping):
            return {name: told(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(told(each) for each in value)
        if isinstance(value, Table):
            return Table(columns=told(value.columns), rows=told(value.rows))
        return value

    return replace(slide, **{part.name: told(getattr(slide, part.name)) for part in fields(slide)})
