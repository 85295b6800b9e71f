"""What one visitor has chosen on the page of trade-offs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.studies.tradeoff_choice import SHARE
from dashboard.address import Address, Parameter
from dashboard.state import text_parameter

__all__ = [
    "POINT_KEY",
    "SHARES",
    "SHARE_KEY",
    "TASK_KEY",
    "address",
    "adopt_click",
    "chosen_point",
    "follow",
    "forget_pick",
    "has_picked",
    "pick",
]

TASK_KEY = "task"
POINT_KEY = "point"
SHARE_KEY = "share_to_keep"

SHARES = range(50, 100)
"""Per cent of the usefulness that may be asked for."""

_PICKED = "point_picked"


def address(tasks: Sequence[str]) -> Address:
    """Return what an address may ask for: `?text=…&task=SST-2&keep=80`."""
    task = Parameter(name="task", key=TASK_KEY, default=tasks[0], options=tasks)
    keep = Parameter(name="keep", key=SHARE_KEY, default=round(100 * SHARE), options=SHARES,
                     hint=f"keep runs from {SHARES[0]} to {SHARES[-1]}.")  # fmt: skip
    return Address("tradeoff", (text_parameter(), task, keep))


def chosen_point() -> int:
    """Return the index of the setting that is shown on a sentence."""
    return int(st.session_state.get(POINT_KEY, 0))


def follow(point: int) -> None:
    """Show the headline's setting as long as the visitor has picked none."""
    if POINT_KEY not in st.session_state:  # the page was left since
        forget_pick()
    if not has_picked():
        st.session_state[POINT_KEY] = point


def has_picked() -> bool:
    """Whether the visitor has picked a setting."""
    return bool(st.session_state.get(_PICKED))


def pick() -> None:
    """Note that the visitor has picked a setting: it stands when the headline changes."""
    st.session_state[_PICKED] = True


def forget_pick() -> None:
    """Let the setting follow the headline again."""
    st.session_state[_PICKED] = False


def adopt_click(figure: str) -> None:
    """Choose the point that was clicked in a figure, once a click, before anything is drawn."""
    event = st.session_state.get(figure)
    points = event.selection.points if event else []
    clicked = next((int(p["customdata"][0]) for p in points if p.get("customdata")), None)
    seen = f"_clicked_in_{figure}"
    if clicked is not None and clicked != st.session_state.get(seen):
        st.session_state[POINT_KEY] = clicked
        pick()
    st.session_state[seen] = clicked
