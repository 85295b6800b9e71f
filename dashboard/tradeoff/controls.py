"""The controls of the page of trade-offs: task, share to keep, setting shown on a sentence."""

from __future__ import annotations

import streamlit as st

from core.defences.registry import entry_of
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said
from dashboard.tradeoff import state

__all__ = ["point_said", "setting_picker", "share_picker", "task_picker"]


def task_picker(found: Tradeoff) -> str:
    """Draw the choice of the task and return it."""
    return str(
        st.pills(
            "Useful for",
            found.tasks,
            key=state.TASK_KEY,
            format_func=task_said,
            required=True,
            persist_state="session",
            help="What the protected vectors are used for: sorting texts into classes by a linear "
            "classifier, judging how alike two sentences are, or finding a text again",
        )
    )


def share_picker() -> float:
    """Draw the choice of how much usefulness is to be kept, and return it as a share."""
    return (
        int(
            st.slider(
                "Usefulness to keep",
                state.SHARES[0],
                state.SHARES[-1],
                key=state.SHARE_KEY,
                format="%d %%",
                persist_state="session",
                help="Of the way from guessing to no defence. A setting counts as keeping it where "
                "the lower end of its 95 % interval does",
            )
        )
        / 100
    )


def setting_picker(found: Tradeoff) -> int:
    """Draw the choice of a setting, which a click in the figure makes as well."""
    chosen = st.selectbox(
        "Defence",
        range(len(found.points)),
        key=state.POINT_KEY,
        format_func=lambda i: point_said(found.points[i]),
        on_change=state.pick,
        help="The same as clicking a point in the figure",
    )
    if state.has_picked():
        st.button("Show the headline's again", on_click=state.forget_pick, key="forget_pick")
    return int(chosen)


def point_said(point: Point) -> str:
    """Return a defence and its strength in words."""
    title = entry_of(point.defence).title
    return f"{title}, {point.label}" if point.label else title
