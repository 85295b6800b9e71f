"""The controls of the page of trade-offs: the task, and the setting shown on a sentence."""

from __future__ import annotations

import streamlit as st

from core.defences.registry import DEFENCES
from core.studies.tradeoff_summary import Point, Tradeoff
from dashboard.tradeoff import state

__all__ = ["setting_picker", "task_picker"]


def task_picker(found: Tradeoff) -> str:
    """Draw the choice of the task and return it."""
    return str(
        st.segmented_control(
            "Useful for",
            found.tasks,
            key=state.TASK_KEY,
            required=True,
            persist_state="session",
            help="What the protected vectors are used for: sorting texts into classes by a linear "
            "classifier, or judging the similarity of two sentences (STS-b)",
        )
    )


def setting_picker(found: Tradeoff, clicked: int | None) -> int:
    """Draw the choice of a setting, which a click in the figure makes as well."""
    state.adopt_click(clicked)
    return int(
        st.selectbox(
            "Defence",
            range(len(found.points)),
            key=state.POINT_KEY,
            format_func=lambda i: _name(found.points[i]),
            help="The same as clicking a point in the figure",
        )
    )


def _name(point: Point) -> str:
    title = DEFENCES[point.defence].title
    return f"{title}, {point.label}" if point.label else title
