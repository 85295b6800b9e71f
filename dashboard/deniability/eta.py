"""The slider of η, and the button that draws the noise again."""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.metric_dp.eta_grid import eta_steps
from leakscope.dashboard.deniability import state

ONE_DRAW = (
    "Release at most one of these outputs: with two, the odds below are squared. Moving the slider "
    "reuses the same draw: two such outputs together void the guarantee."
)
"""The warning for "Draw again" and the slider: both show further outputs of one sentence."""


def eta_slider(dimension: int) -> float:
    """Draw the slider of η and return its value."""
    return float(
        st.select_slider(
            "η (eta): less noise to the right",
            eta_steps(dimension),
            key=state.ETA_KEY,
            persist_state="session",
            format_func=lambda eta: f"{eta:g}",
            help="The privacy parameter. To the left, more noise replaces more tokens, by less "
            "similar ones. To the right, less noise keeps more of the text, for readers and for "
            "attackers. Equal steps change the noise by equal factors. Moving the slider keeps the "
            "noise of one draw: never release outputs at two η.",
        )
    )


def draw_again_button() -> None:
    """Draw the button that replaces the session's noise."""
    st.button(
        "Draw again",
        key="draw-again",
        icon=":material/casino:",
        help="Privatises the sentence with new noise. Moving the slider keeps the draw, so that "
        "only η changes the output. Release only one output: each further draw of the same "
        "sentence raises the odds to a higher power.",
        on_click=state.draw_again,
    )
