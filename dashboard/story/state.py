"""The visitor's story: its pins, title, audience and duration, in the session until saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from leakscope.core.findings.registry import VIEWS
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.reading import MOST_PINS
from leakscope.dashboard.ui.state import forget_widgets

TITLE_KEY = "story_title"
AUDIENCE_KEY = "story_audience"
_PINS, _NEXT, _MINUTES = "_story_pins", "_story_next", "_story_minutes"
_SHOWN = "_story_shown"
"""Session key of the number of the pin whose slide is shown."""
_TITLE = "My story"


@dataclass(frozen=True)
class NumberedPin:
    """A pin with a number that identifies it while the order changes."""

    number: int
    pin: Pin


def numbered_pins() -> list[NumberedPin]:
    """Return the session's pins in the story's order."""
    found: list[NumberedPin] = st.session_state.setdefault(_PINS, [])
    return found


def story() -> Story:
    """Build the visitor's story from the session: title, audience and pins."""
    return Story(
        title=str(st.session_state.get(TITLE_KEY, _TITLE)) or _TITLE,
        audience=str(st.session_state.get(AUDIENCE_KEY, "")),
        minutes=int(st.session_state.get(_MINUTES, 0)),
        pins=tuple(each.pin for each in numbered_pins()),
    )


def is_full() -> bool:
    """Return whether the visitor's story has the most pins allowed."""
    return len(numbered_pins()) >= MOST_PINS


def add(pin: Pin) -> None:
    """Insert a pin at the story's end, but before a closing slide; do nothing if it is full."""
    if is_full():
        return
    number = int(st.session_state.get(_NEXT, 0))
    st.session_state[_NEXT] = number + 1
    pins = list(numbered_pins())
    at = len(pins) - 1 if pins and _closes(pins[-1].pin) and not _closes(pin) else len(pins)
    pins.insert(at, NumberedPin(number, pin))
    st.session_state[_PINS] = pins


def _closes(pin: Pin) -> bool:
    """Return whether a pin shows a view that is meant to close a story."""
    return pin.shows in VIEWS and VIEWS[pin.shows].closes


def add_all(found: Story) -> None:
    """Append a story's pins to the visitor's; an empty one also takes its title and audience."""
    if not numbered_pins():
        st.session_state[TITLE_KEY] = found.title
        st.session_state[AUDIENCE_KEY] = found.audience
        st.session_state[_MINUTES] = found.minutes
    for pin in found.pins:
        add(pin)


def replace_story(found: Story | None) -> None:
    """Replace the session's story with another, or with an empty one for None."""
    for key in (_PINS, TITLE_KEY, AUDIENCE_KEY, _MINUTES, _SHOWN):
        st.session_state.pop(key, None)
    forget_widgets("story-")
    if found is not None:
        add_all(found)


def move(number: int, to: int) -> None:
    """Move a numbered pin to a position from 0, limited to the story's length; show its slide."""
    pins = list(numbered_pins())
    moved = [each for each in pins if each.number == number]
    others = [each for each in pins if each.number != number]
    at = min(max(to, 0), len(others))
    st.session_state[_PINS] = [*others[:at], *moved, *others[at:]]
    show(number)


def show(number: int) -> None:
    """Select the numbered pin whose slide is shown beside the list."""
    st.session_state[_SHOWN] = number


def shown_place() -> int:
    """Return the position of the pin whose slide is shown: 0 unless one was selected."""
    return _place_of(st.session_state.get(_SHOWN))


def _place_of(number: int | None) -> int:
    """Return the position of a numbered pin in the story; 0 if there is none."""
    return next((i for i, each in enumerate(numbered_pins()) if each.number == number), 0)


def remove(number: int) -> None:
    """Remove a numbered pin from the story; the slide that takes its position is shown."""
    here = _place_of(number)
    left = [each for each in numbered_pins() if each.number != number]
    st.session_state[_PINS] = left
    if left:
        show(left[min(here, len(left) - 1)].number)


def edit_pin(number: int, **parts: Any) -> None:
    """Replace the given fields (heading, remark, notes) of a numbered pin."""
    st.session_state[_PINS] = [
        NumberedPin(each.number, replace(each.pin, **parts)) if each.number == number else each
        for each in numbered_pins()
    ]
