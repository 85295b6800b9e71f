"""The controls of the page of inversion: which attacks, and what counts."""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from dashboard import cache
from dashboard.inversion import state
from dashboard.inversion.answers import ENCODER

__all__ = ["attack_picker", "stop_words_toggle"]


def attack_picker() -> None:
    """Draw the choice of attacks, folded up: what is chosen is all that is in sight."""
    n = len(state.chosen_attacks())
    with st.popover(
        f"{n or 'No'} attack{'' if n == 1 else 's'} chosen",
        icon=":material/undo:",
        help="How the attacker turns the vector back into words",
        key="attacks",
    ):
        st.pills(
            "Attacks",
            state.on_offer(),
            selection_mode="multi",
            key=state.ATTACKS_KEY,
            persist_state="session",
            wrap=True,
            format_func=_pill,
            help="Each choice gets a card below. :material/bolt: answers as you type, "
            ":material/hourglass_top: runs when you ask.",
        )


def _pill(name: str) -> str:
    answers_at_once = INVERSION_ATTACKS[name].is_live and cache.opens_at_once(name, ENCODER)
    icon = "bolt" if answers_at_once else "hourglass_top"
    return f":material/{icon}: {INVERSION_ATTACKS[name].title}"


def stop_words_toggle() -> None:
    """Draw the switch that makes stop words count."""
    st.toggle(
        "Count stop words",
        key=state.STOP_WORDS_KEY,
        persist_state="session",
        help="Words such as *the*, *of* and *and*. They say little, so they are left out of the "
        "scores; most attacks were trained without them and miss them when they count.",
    )
