"""The visitor's choices on the trade-off page."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.setting import read_setting, setting_name
from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.prose import plain
from leakscope.core.studies.tradeoff.choice import SHARE, attacked_targets, untimed
from leakscope.core.studies.tradeoff.summary import Point, Tradeoff
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.state import keep_choice, text_parameter

USE_KEY = "vectors_used_for"
TASK_KEY = "task"
SHARE_KEY = "share_to_keep"
READS_KEY = "reads"
LIMIT_KEY = "most_milliseconds"
TAB_KEY = "tradeoff_tab"
POINT_KEY = "point"
AGAINST_KEY = "against"

SIDES = {"A": POINT_KEY, "B": AGAINST_KEY}
"""The session keys of the two compared settings, by side."""

OWN = "own"
"""Placeholder for a chain that the visitor composes, instead of a setting's name."""

SHARES = range(50, 100)
"""The shares of utility to keep that can be chosen, in per cent."""

ON_SENTENCE = "On your sentence"
"""The title of the tab that tries two settings on the sentence."""

NO_LIMIT = "any"
LIMITS = (NO_LIMIT, "1", "2", "5", "10", "20", "50", "100", "200", "500")
"""The limits of a setting's time per text that can be chosen, in milliseconds."""

_PICKED = "point_picked"
_MOST_CHARACTERS = 210
"""The most characters of an error message about the query, whose content is arbitrary."""


def adopt_address(found: Tradeoff) -> Address:
    """Copy the URL query to the session, complete the controls, and return the address."""
    asked = address(found)
    adopted = asked.adopt()
    if "point" in adopted:
        mark_picked()
    if {"text", "against"} & set(adopted):
        show_sentence()
    keep_choice(USE_KEY, found.uses)
    if "task" in adopted:
        use = next(use for use in found.uses if st.session_state[TASK_KEY] in found.tasks_of(use))
        st.session_state[USE_KEY] = use
    use = st.session_state[USE_KEY]
    if st.session_state.get(TASK_KEY) not in found.tasks_of(use):
        st.session_state[TASK_KEY] = found.default_task(use)
    keep_choice(READS_KEY, attacked_targets(found))
    if st.session_state.get(AGAINST_KEY) is None:
        st.session_state[AGAINST_KEY] = setting_name_of(found.undefended)
    return asked


def address(found: Tradeoff) -> Address:
    """Build the page's address parameters from the tasks and settings of the results.

    `?text=…&use=classification&task=SST-2&keep=80&ms=10&reads=attribute&point=text_to_text:eta=75`
    A task implies the use of the vectors; a use alone opens one of its tasks.
    """
    use = Parameter(name="use", key=USE_KEY, default=found.uses[0], options=found.uses)
    task = Parameter(
        name="task", key=TASK_KEY, default=found.default_task(found.uses[0]), options=found.tasks
    )
    keep = Parameter(
        name="keep",
        key=SHARE_KEY,
        default=round(100 * SHARE),
        options=SHARES,
        hint=f"keep can be {SHARES[0]} to {SHARES[-1]}.",
    )
    is_timed = len(untimed(found)) < len(found.points)
    limit = Parameter(
        name="ms", key=LIMIT_KEY, default=NO_LIMIT, options=LIMITS if is_timed else (NO_LIMIT,)
    )
    reads = Parameter(name="reads", key=READS_KEY, default="words", options=attacked_targets(found))
    base = setting_name_of(found.undefended)
    sides = (
        _side_parameter(found, "point", "A", None),
        _side_parameter(found, "against", "B", base),
    )
    return Address("tradeoff", (text_parameter(), use, task, keep, limit, reads, *sides))


def _side_parameter(found: Tradeoff, name: str, side: str, default: str | None) -> Parameter:
    """Build the address parameter of side A's or B's setting."""
    measured = {setting_name_of(point) for point in found.points}

    def read(text: str) -> str:
        """Parse a setting's name from the URL; check it unless it was measured."""
        text = text.replace(" ", "+")  # a plus typed into a URL arrives as a space
        if (
            text in measured
        ):  # results of earlier versions may have settings that read_setting rejects
            return text
        spec = read_setting(text, name)
        return setting_name(spec.name, dict(spec.settings))

    def write(value: str | None) -> str | None:
        """Return a setting's name for a link; for OWN, the name of the composed chain."""
        return own_name(side) if value == OWN else value

    return Parameter(
        name=name,
        key=SIDES[side],
        default=default,
        read=read,
        write=write,
        hint=_why_invalid(name, read),
    )


def _why_invalid(name: str, read: object) -> str:
    """Parse the URL's setting with `read`; return the error message, "" if it is valid."""
    asked = st.query_params.get_all(name)
    try:
        if asked:
            read(asked[-1])  # type: ignore[operator]
    except InvalidInputError as error:
        text = str(error).encode("utf-8", "replace").decode("utf-8")
        is_short = len(text) <= _MOST_CHARACTERS
        return plain(text if is_short else f"{text[: _MOST_CHARACTERS - 1]}…")
    return ""


def setting_name_of(point: Point) -> str:
    """Return the name (defence and settings) of a measured point."""
    return setting_name(point.defence, dict(point.settings))


def point_index(found: Tradeoff, name: str | None) -> int | None:
    """Return the index of the measured point with this setting's name; None if not measured."""
    return next((i for i, point in enumerate(found.points) if setting_name_of(point) == name), None)


def compared_points(found: Tradeoff) -> dict[str, int]:
    """Return the indices of the measured points among sides A and B, by side."""
    places = {side: point_index(found, st.session_state.get(key)) for side, key in SIDES.items()}
    return {side: place for side, place in places.items() if place is not None}


def own_name(side: str) -> str | None:
    """Return the name of the chain that the visitor composed on a side; None if none is valid."""
    name: str | None = st.session_state.get(f"_own_{side}")
    return name


def remember_own(side: str, name: str | None) -> None:
    """Store the name of the chain composed on a side; None for an invalid one."""
    st.session_state[f"_own_{side}"] = name


def follow_headline(point: Point) -> None:
    """Set side A to the headline's setting unless the visitor has picked one."""
    if st.session_state.get(POINT_KEY) is None:  # the visitor has left the page since
        forget_pick()
    if not has_picked():
        st.session_state[POINT_KEY] = setting_name_of(point)


def has_picked() -> bool:
    """Return whether the visitor has picked side A's setting."""
    return bool(st.session_state.get(_PICKED))


def mark_picked() -> None:
    """Record that the visitor picked side A's setting, so that the headline leaves it alone."""
    st.session_state[_PICKED] = True
    show_sentence()


def show_sentence() -> None:
    """Select the tab of the sentence; to be called before the tabs are drawn."""
    st.session_state[TAB_KEY] = ON_SENTENCE


def forget_pick() -> None:
    """Let side A follow the headline's setting again."""
    st.session_state[_PICKED] = False


def adopt_click(found: Tradeoff, figure: str) -> None:
    """Set side A to the point clicked in a figure, once per click, before anything is drawn."""
    event = st.session_state.get(figure)
    points = event.selection.points if event else []
    clicked = next((int(p["customdata"][0]) for p in points if p.get("customdata")), None)
    seen = f"_clicked_in_{figure}"
    if clicked is not None and clicked != st.session_state.get(seen):
        st.session_state[POINT_KEY] = setting_name_of(found.points[clicked])
        mark_picked()
    st.session_state[seen] = clicked
