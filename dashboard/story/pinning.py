"""Pin a page's finding to the story, with its figure and facts.

Typed text is left out unless the visitor chooses to include it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import OPENS, Finding, Table
from leakscope.core.findings.prose import plain
from leakscope.core.pages import PAGES
from leakscope.core.story.format import Pin
from leakscope.dashboard.address import Query
from leakscope.dashboard.story import state
from leakscope.dashboard.ui.downloads import pin_place
from leakscope.dashboard.ui.state import is_presenting, menu_choice

_TYPED = {"text", "names", "canary", "search"}
"""Address parameters that hold typed text."""

_REQUESTED = "_story_requested"
"""Session key of the page to pin and whether to include typed text, until the page is drawn."""

_WITH, _WITHOUT = "With what I typed", "Numbers only"

EXAMPLE = "with the page's example, because the story does not contain what was typed"
"""How a view of typed text opens if the text was left out."""
OWN_FILE = "not possible, because a link cannot contain your own file"
"""Why a view of an upload cannot be opened again."""
OWN_ROWS = "not possible, because a link cannot contain your own study"
"""Why a view of a user's own study cannot be opened again."""
NOTHING_REPEATS = "none: your own file"
"""Replaces the command of a finding that no command reproduces."""


def _draw_button(page: str, has_typed: bool) -> None:
    """Draw the "Add to story" button; a menu if the view contains typed text."""
    key, place = f"add-to-story-{page}", pin_place()
    n = len(state.numbered_pins())
    about = f"Pins this view as it is now: finding, figure, data and method. {n} pinned so far."
    common: dict[str, Any] = {
        "key": key,
        "icon": ":material/keep:",
        "disabled": state.is_full(),
        "on_click": _request_pin,
        "args": (page, key * bool(has_typed)),
    }
    if has_typed:
        place.menu_button(
            "Add to story",
            [_WITHOUT, _WITH],
            help=f"{about} You choose whether it includes what you typed and what your file names.",
            **common,
        )
    else:
        place.button("Add to story", help=about, **common)


def _request_pin(page: str, menu: str) -> None:
    """Store which page to pin and whether to include typed text, as a callback."""
    chosen = menu_choice(menu) if menu else None
    if menu and chosen not in (_WITH, _WITHOUT):  # the page closed the menu
        return
    st.session_state[_REQUESTED] = (page, chosen == _WITH)


@dataclass(frozen=True, kw_only=True)
class PinnedView:
    """A finding to pin, with what must not appear in the story and how it opens again.

    Attributes
    ----------
    finding : Finding
    instead : mapping
        Words that must not appear in the story, and their replacements.
    withheld : iterable of str
        Further address parameters that hold typed text.
    opens : str
        What the page shows when the pin is opened, if that differs from the pin.
    is_live : bool
        Whether an address opens the view again; if not, `opens` says why.
    """

    finding: Finding
    instead: Mapping[str, str] = field(default_factory=dict)
    withheld: Iterable[str] = ()
    opens: str = ""
    is_live: bool = True


def pin_button(
    page: str,
    query: Query,
    see: Callable[[bool], PinnedView],
    *,
    has_typed: bool | None = None,
) -> None:
    """Draw the button that pins a page's finding; if it was clicked, pin the finding.

    Parameters
    ----------
    query : list of (str, str)
        The query that opens the view again.
    see : callable
        Given whether typed text may be included, returns the view to pin. Called in the run that
        the click started, so that it sees the latest values of all controls.
    has_typed : bool or None
        None if the view shows nothing typed or uploaded. True if it does: the visitor then chooses
        whether to include it. False if it could, but shows an example.
    """
    requested = st.session_state.pop(_REQUESTED, None)
    if is_presenting():
        return
    if requested is not None and requested[0] == page:  # ignore a request of another page
        with_typed = requested[1] if has_typed else has_typed is not None
        try:
            view = see(with_typed)
            finding = view.finding.with_plain_figure()
        except CoreError as error:
            st.toast(f"This view was not pinned: {error}", icon=":material/error:")
        else:
            _add_pin(
                page,
                query,
                replace(view, finding=finding),
                has_typed=bool(has_typed),
                with_typed=with_typed,
            )
    _draw_button(page, bool(has_typed))


def _add_pin(
    page: str, query: Query, view: PinnedView, *, has_typed: bool, with_typed: bool
) -> None:
    """Add a view's finding to the story, without typed text unless the visitor includes it."""
    opens_example = has_typed and not with_typed and view.is_live
    opens = "; ".join(filter(None, (EXAMPLE * opens_example, view.opens)))
    finding = view.finding
    finding = replace(
        finding,
        facts=(*finding.facts, *(((OPENS, opens),) if opens else ())),
        caveat=finding.caveat or PAGES[page].caveat,
        live=(),
    )
    if view.instead:
        finding = _replace_words(finding, view.instead)
    left_out = {*view.withheld, *(() if with_typed else _TYPED)}
    kept = tuple(each for each in query if view.is_live and each[0] not in left_out)
    state.add(Pin(page=page, parameters=kept, slide=finding, is_live=view.is_live))
    st.toast(f"Pinned to your story: {plain(finding.title)}", icon=":material/keep:")


def _replace_words(slide: Finding, instead: Mapping[str, str]) -> Finding:
    """Copy a slide with each word of `instead` replaced in all of its texts."""
    words = {form: new for old, new in instead.items() for form in (old, plain(old))}
    ranked = sorted(filter(None, words), key=len, reverse=True)
    found = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in ranked))

    def substitute(value: Any) -> Any:
        """Copy a nested value with the words replaced in all of its strings."""
        if isinstance(value, str):
            return found.sub(lambda match: words[match[0]], value) if ranked else value
        if isinstance(value, Mapping):
            return {name: substitute(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(substitute(each) for each in value)
        if isinstance(value, Table):
            return Table(columns=substitute(value.columns), rows=substitute(value.rows))
        return value

    return replace(
        slide, **{part.name: substitute(getattr(slide, part.name)) for part in fields(slide)}
    )
