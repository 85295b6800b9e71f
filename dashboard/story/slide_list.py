"""The list of a story's slides: dragged into order, and their headings edited in place."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.components.v2 import component

from leakscope.core.assets import ROOT
from leakscope.core.story.deck import Page
from leakscope.dashboard.story import state
from leakscope.dashboard.story.state import NumberedPin

MOST_IN_HEADING = 300
"""The most characters of a heading."""

_HERE = ROOT / "dashboard" / "story"
_KEY = "story-slides"
_list = component(
    "leakscope_slide_list",
    html='<div class="slide-list"><ol></ol><div class="spoken" aria-live="polite"></div></div>',
    css=(_HERE / "slide_list.css").read_text(encoding="utf-8"),
    js=(_HERE / "slide_list.js").read_text(encoding="utf-8"),
)


def slide_list(pins: Sequence[NumberedPin], pages: Sequence[Page], shown: int) -> None:
    """Draw the list of slides; what the visitor moves, edits or chooses goes to the story.

    Parameters
    ----------
    shown : int
        The number of the pin whose slide is shown beside the list.
    """
    slides = [
        {
            "number": each.number,
            "heading": page.heading,
            "finding": page.finding or page.heading,
            "most": MOST_IN_HEADING,
        }
        for each, page in zip(pins, pages, strict=True)
    ]
    _list(
        key=_KEY,
        data={"slides": slides, "shown": shown},
        on_moved_change=_move,
        on_edited_change=_edit,
        on_chosen_change=_choose,
    )


def _move() -> None:
    """Move a slide to another place, from a callback."""
    if moved := st.session_state[_KEY].moved:
        state.move(int(moved["number"]), int(moved["to"]))


def _edit() -> None:
    """Store a heading that was edited, from a callback; an empty one is the view's finding."""
    if edited := st.session_state[_KEY].edited:
        heading = " ".join(str(edited["heading"]).split())[:MOST_IN_HEADING]
        state.edit_pin(int(edited["number"]), heading=heading)


def _choose() -> None:
    """Show a slide beside the list, from a callback."""
    if chosen := st.session_state[_KEY].chosen:
        state.show(int(chosen["number"]))
