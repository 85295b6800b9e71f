"""The slider of η and what it needs: its steps, its address, the session's own noise."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.defences.deniability.vocabulary import eta_grid
from dashboard.deniability import state

__all__ = ["draw_again_button", "eta_slider", "eta_steps"]


@st.cache_data(show_spinner=False, max_entries=8)
def eta_steps(dimension: int) -> tuple[float, ...]:
    """Return the steps of the slider: 15 to 200 at n = 384, about 2 % apart, scaled with n."""
    low, high = (float(eta_grid(dimension)[i]) for i in (0, -1))
    steps = {_tidy(float(s), low) for s in np.geomspace(low, high, 131)}
    steps |= {float(s) for s in range(30, 200, 5)}
    return tuple(sorted(s for s in steps if low <= s <= high))


def _tidy(eta: float, low: float) -> float:
    """Round to halves and wholes, or to three digits where the scale is small."""
    if low < 7:
        return float(f"{eta:.3g}")
    return round(2 * eta) / 2 if eta < 30 else float(round(eta))


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
            "readers and for attackers. Equal steps change the noise by equal factors.",
        )
    )


def draw_again_button() -> None:
    """Draw the button that draws fresh noise."""
    st.button(
        "Draw again",
        key="draw-again",
        icon=":material/casino:",
        help="Privatises the sentence under fresh noise. Moving the slider keeps the draw, so that "
        "you see what η alone changes.",
        on_click=state.draw_again,
    )
