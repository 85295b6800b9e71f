"""The story of one visitor: in the memory of their session, until they save it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from core.story.format import Pin, Story
from core.story.reading import MOST_PINS
from core.story.views import VIEWS
from dashboard.state import forget_widgets

__all__ = [
    "AUDIENCE_KEY",
    "TITLE_KEY",
    "Placed",
    "add",
    "add_all",
    "is_full",
    "move",
    "placed",
    "remove",
    "start_with",
    "story",
    "write",
]

TITLE_KEY = "story_title"
AUDIENCE_KEY = "story_audience"
_PINS, _NEXT, _MINUTES = "_story_pins", "_story_next", "_story_minutes"
_TITLE = "My story"


@dataclass(frozen=True)
class Placed:
    """A pin, and what tells it from others while its order changes."""

    number: int
    pin: Pin


def placed() -> list[Placed]:
    """Return the pins in their order."""
    found: list[Placed] = st.session_state.setdefault(_PINS, [])
    return found


def story() -> Story:
    """Return the story as it stands."""
    return Story(
        title=str(st.session_state.get(TITLE_KEY, _TITLE)) or _TITLE,
        audience=str(st.session_state.get(AUDIENCE_KEY, "")),
        minutes=int(st.session_state.get(_MINUTES, 0)),
        pins=tuple(each.pin for each in placed()),
    )


def is_full() -> bool:
    """Return whether no further pin is taken."""
    return len(placed()) >= MOST_PINS


def add(pin: Pin) -> None:
    """Put a pin at the end, before a slide that closes the story."""
    if is_full():
        return
    number = int(st.session_state.get(_NEXT, 0))
    st.session_state[_NEXT] = number + 1
    pins = list(placed())
    at = len(pins) - 1 if pins and _closes(pins[-1].pin) and not _closes(pin) else len(pins)
    pins.insert(at, Placed(number, pin))
    st.session_state[_PINS] = pins


def _closes(pin: Pin) -> bool:
    return pin.shows in VIEWS and VIEWS[pin.shows].closes


def add_all(found: Story) -> None:
    """Put the pins of a story at the end; a story without pins takes its title as well."""
    if not placed():
        st.session_state[TITLE_KEY] = found.title
        st.session_state[AUDIENCE_KEY] = found.audience
        st.session_state[_MINUTES] = found.minutes
    for pin in found.pins:
        add(pin)


def start_with(found: Story | None) -> None:
    """Begin anew, with the pins of a story or with none."""
    for key in (_PINS, TITLE_KEY, AUDIENCE_KEY, _MINUTES):
        st.session_state.pop(key, None)
    forget_widgets("story-")
    if found is not None:
        add_all(found)


def move(number: int, by: int) -> None:
    """Move a pin up or down."""
    pins = list(placed())
    here = next(i for i, each in enumerate(pins) if each.number == number)
    there = min(max(here + by, 0), len(pins) - 1)
    pins.insert(there, pins.pop(here))
    st.session_state[_PINS] = pins


def remove(number: int) -> None:
    """Take a pin out."""
    st.session_state[_PINS] = [each for each in placed() if each.number != number]


def write(number: int, **parts: Any) -> None:
    """Replace what the author says of a pin."""
    st.session_state[_PINS] = [
        Placed(each.number, replace(each.pin, **parts)) if each.number == number else each
        for each in placed()
    ]
