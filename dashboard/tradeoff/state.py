"""What one visitor has chosen on the page of trade-offs."""

from __future__ import annotations

import streamlit as st

from core.errors import InvalidInputError
from core.studies.tradeoff_choice import SHARE, reads_of, untimed
from core.studies.tradeoff_setting import read_setting, setting_name
from core.studies.tradeoff_summary import Point, Tradeoff
from dashboard.address import Address, Parameter
from dashboard.calm import plain
from dashboard.state import keep_choice, text_parameter

__all__ = [
    "AGAINST_KEY",
    "LIMITS",
    "LIMIT_KEY",
    "NO_LIMIT",
    "OWN",
    "POINT_KEY",
    "READS_KEY",
    "SHARES",
    "SHARE_KEY",
    "SIDES",
    "TASK_KEY",
    "USE_KEY",
    "address",
    "adopt",
    "adopt_click",
    "follow",
    "forget_pick",
    "has_picked",
    "name_of",
    "own_name",
    "pick",
    "place_of",
    "remember_own",
    "shown_places",
]

USE_KEY = "vectors_used_for"
TASK_KEY = "task"
SHARE_KEY = "share_to_keep"
READS_KEY = "reads"
LIMIT_KEY = "most_milliseconds"
POINT_KEY = "point"
AGAINST_KEY = "against"

SIDES = {"A": POINT_KEY, "B": AGAINST_KEY}
"""The two settings that stand side by side, and where the session holds the name of each."""

OWN = "own"
"""In the place of a name: stages that the visitor picks."""

SHARES = range(50, 100)
"""Per cent of the usefulness that may be asked for."""

NO_LIMIT = "any"
LIMITS = (NO_LIMIT, "1", "2", "5", "10", "20", "50", "100", "200", "500")
"""Milliseconds a text that a setting may take at most."""

_PICKED = "point_picked"
_MOST_TOLD = 210
"""Letters of why an address is refused: it may hold anything."""


def adopt(found: Tradeoff) -> Address:
    """Take over what the address asks for, and return the address."""
    asked = address(found)
    adopted = asked.adopt()
    if "point" in adopted:
        pick()
    keep_choice(USE_KEY, found.uses)
    if "task" in adopted:
        use = next(use for use in found.uses if st.session_state[TASK_KEY] in found.tasks_of(use))
        st.session_state[USE_KEY] = use
    use = st.session_state[USE_KEY]
    if st.session_state.get(TASK_KEY) not in found.tasks_of(use):
        st.session_state[TASK_KEY] = found.opening_task(use)
    keep_choice(READS_KEY, reads_of(found))
    if st.session_state.get(AGAINST_KEY) is None:
        st.session_state[AGAINST_KEY] = name_of(found.undefended)
    return asked


def address(found: Tradeoff) -> Address:
    """Return what an address may ask for.

    `?text=…&use=classification&task=SST-2&keep=80&ms=10&reads=attribute&point=text_to_text:eta=75`
    A task says by itself what the vectors are used for; a use alone opens on one of its tasks.
    """
    use = Parameter(name="use", key=USE_KEY, default=found.uses[0], options=found.uses)
    task = Parameter(name="task", key=TASK_KEY, default=found.opening_task(found.uses[0]),
                     options=found.tasks)  # fmt: skip
    keep = Parameter(name="keep", key=SHARE_KEY, default=round(100 * SHARE), options=SHARES,
                     hint=f"keep runs from {SHARES[0]} to {SHARES[-1]}.")  # fmt: skip
    is_timed = len(untimed(found)) < len(found.points)
    limit = Parameter(name="ms", key=LIMIT_KEY, default=NO_LIMIT,
                      options=LIMITS if is_timed else (NO_LIMIT,))  # fmt: skip
    reads = Parameter(name="reads", key=READS_KEY, default="words", options=reads_of(found))
    base = name_of(found.undefended)
    sides = (_side(found, "point", "A", None), _side(found, "against", "B", base))
    return Address("tradeoff", (text_parameter(), use, task, keep, limit, reads, *sides))


def _side(found: Tradeoff, name: str, side: str, default: str | None) -> Parameter:
    measured = {name_of(point) for point in found.points}

    def read(text: str) -> str:
        text = text.replace(" ", "+")  # a plus that was typed into an address arrives as a space
        if text in measured:  # by a former version, too, which read_setting may not know
            return text
        spec = read_setting(text, name)
        return setting_name(spec.name, dict(spec.settings))

    def write(value: str | None) -> str | None:
        return own_name(side) if value == OWN else value

    return Parameter(
        name=name, key=SIDES[side], default=default, read=read, write=write, hint=_why(name, read)
    )


def _why(name: str, read: object) -> str:
    """Return why what the address asks for is no setting: a value, a name or an order is wrong."""
    asked = st.query_params.get_all(name)
    try:
        if asked:
            read(asked[-1])  # type: ignore[operator]
    except InvalidInputError as error:
        told = str(error).encode("utf-8", "replace").decode("utf-8")
        return plain(told if len(told) <= _MOST_TOLD else f"{told[: _MOST_TOLD - 1]}…")
    return ""


def name_of(point: Point) -> str:
    """Return the name of a setting that was measured."""
    return setting_name(point.defence, dict(point.settings))


def place_of(found: Tradeoff, name: str | None) -> int | None:
    """Return where a setting stands among those that were measured."""
    return next((i for i, point in enumerate(found.points) if name_of(point) == name), None)


def shown_places(found: Tradeoff) -> dict[str, int]:
    """Return where the settings of the two sides stand, as far as they were measured."""
    places = {side: place_of(found, st.session_state.get(key)) for side, key in SIDES.items()}
    return {side: place for side, place in places.items() if place is not None}


def own_name(side: str) -> str | None:
    """Return the name of the stages that the visitor picked on a side, where they make a chain."""
    told: str | None = st.session_state.get(f"_own_{side}")
    return told


def remember_own(side: str, name: str | None) -> None:
    """Note what the visitor composed on a side."""
    st.session_state[f"_own_{side}"] = name


def follow(point: Point) -> None:
    """Show the headline's setting as long as the visitor has picked none."""
    if st.session_state.get(POINT_KEY) is None:  # the page was left since
        forget_pick()
    if not has_picked():
        st.session_state[POINT_KEY] = name_of(point)


def has_picked() -> bool:
    """Whether the visitor has picked a setting."""
    return bool(st.session_state.get(_PICKED))


def pick() -> None:
    """Note that the visitor has picked a setting: it stands when the headline changes."""
    st.session_state[_PICKED] = True


def forget_pick() -> None:
    """Let the setting follow the headline again."""
    st.session_state[_PICKED] = False


def adopt_click(found: Tradeoff, figure: str) -> None:
    """Choose the point that was clicked in a figure, once a click, before anything is drawn."""
    event = st.session_state.get(figure)
    points = event.selection.points if event else []
    clicked = next((int(p["customdata"][0]) for p in points if p.get("customdata")), None)
    seen = f"_clicked_in_{figure}"
    if clicked is not None and clicked != st.session_state.get(seen):
        st.session_state[POINT_KEY] = name_of(found.points[clicked])
        pick()
    st.session_state[seen] = clicked
