"""The list of a story's slides: dragged into order, and their headings edited in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
_DONE = "_story_events_done"
"""Session key of the last event that was applied: the browser repeats those after it."""
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
        data={"slides": slides, "shown": shown, "done": st.session_state.get(_DONE, 0)},
        on_events_change=_apply,
    )


def _apply() -> None:
    """Apply what the visitor did since the last time, from a callback."""
    for event in st.session_state[_KEY].events or ():
        if event["id"] > st.session_state.get(_DONE, 0):
            st.session_state[_DONE] = event["id"]
            apply_event(event)


def apply_event(event: Mapping[str, Any]) -> None:
    """Move a slide, store its heading or show it; an empty heading is the view's finding."""
    number = int(event["number"])
    if event["kind"] == "moved":
        state.move(number, int(event["to"]))
    elif event["kind"] == "edited":
        heading = " ".join(str(event["heading"]).split())[:MOST_IN_HEADING]
        state.edit_pin(number, heading=heading)
    else:
        state.show(number)
