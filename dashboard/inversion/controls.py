"""The controls of the inversion page: the attacks, and whether stop words count."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import state
from leakscope.dashboard.inversion.answers import ENCODER


def attack_picker() -> None:
    """Draw the choice of attacks in a popover that shows how many are chosen."""
    n = len(state.chosen_attacks())
    with st.popover(
        f"{n or 'No'} attack{'' if n == 1 else 's'} chosen",
        icon=":material/undo:",
        help="How the attacker recovers words from the vector",
        key="attacks",
    ):
        st.pills(
            "Attacks",
            state.selectable_attacks(),
            selection_mode="multi",
            key=state.ATTACKS_KEY,
            persist_state="session",
            wrap=True,
            format_func=_attack_label,
            help="Each attack gets a card below. :material/bolt: answers as you type, "
            ":material/hourglass_top: runs when you start it.",
        )


def _attack_label(name: str) -> str:
    """Return an attack's title with an icon for how fast it answers."""
    answers_at_once = INVERSION_ATTACKS[name].is_live and cache.opens_fast(name, ENCODER)
    icon = "bolt" if answers_at_once else "hourglass_top"
    return f":material/{icon}: {INVERSION_ATTACKS[name].title}"


def stop_words_toggle() -> None:
    """Draw the switch that makes stop words count."""
    st.toggle(
        "Count stop words",
        key=state.STOP_WORDS_KEY,
        persist_state="session",
        help="Words such as *the*, *of* and *and*. They say little, so they are not scored. Most "
        "attacks were trained without them and miss them if they count.",
    )
