"""The slider of η, and the session's own noise."""

from __future__ import annotations

import streamlit as st

from core.defences.metric_dp.eta_grid import eta_steps
from dashboard.deniability import state

__all__ = ["ONE_DRAW", "draw_again_button", "eta_slider"]

ONE_DRAW = (
    "Release one of these outputs at most. k draws put the odds to the power k, and two outputs of "
    "one draw at two η share their noise: together they have no guarantee."
)
"""What "Draw again" and the slider ask for: both show further outputs of one sentence."""


def eta_slider(dimension: int) -> float:
    """Draw the slider and return η."""
    return float(
        st.select_slider(
            "η (eta): how little noise",
            eta_steps(dimension),
            key=state.ETA_KEY,
            persist_state="session",
            format_func=lambda eta: f"{eta:g}",
            help="The privacy parameter. To the left more noise: tokens are replaced more often, "
            "and by stranger ones. To the right less noise: more of the text survives, for its "
            "readers and for attackers. Equal steps change the noise by equal factors. The "
            "outputs at two η come from one draw: never release both.",
        )
    )


def draw_again_button() -> None:
    """Draw the button that draws fresh noise."""
    st.button(
        "Draw again",
        key="draw-again",
        icon=":material/casino:",
        help="Privatises the sentence under fresh noise. Moving the slider keeps the draw, so that "
        "you see what η alone changes. Release one output only: each further draw of the same "
        "sentence puts the odds to a higher power.",
        on_click=state.draw_again,
    )
