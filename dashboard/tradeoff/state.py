"""What one visitor has chosen on the page of trade-offs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.address import Address, Parameter
from dashboard.state import text_parameter

__all__ = ["POINT_KEY", "TASK_KEY", "address", "adopt_click", "choose_first", "chosen_point"]

TASK_KEY = "task"
POINT_KEY = "point"


def address(tasks: Sequence[str]) -> Address:
    """Return what an address may ask for: `?text=…&task=SST-2`."""
    task = Parameter(name="task", key=TASK_KEY, default=tasks[0], options=tasks)
    return Address("tradeoff", (text_parameter(), task))


def chosen_point() -> int:
    """Return the index of the setting that is shown on a sentence."""
    return int(st.session_state.get(POINT_KEY, 0))


def choose_first(point: int) -> None:
    """Show this setting on the sentence unless the visitor has chosen one."""
    st.session_state.setdefault(POINT_KEY, point)


def adopt_click(clicked: int | None) -> None:
    """Choose the point that was clicked, once per click."""
    if clicked is not None and clicked != st.session_state.get("_clicked_point"):
        st.session_state[POINT_KEY] = clicked
    st.session_state["_clicked_point"] = clicked
