"""The controls of the page of names."""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.names.experiment import MOST_NAMES
from core.protocols import Access
from dashboard import cache
from dashboard.inversion.answers import ENCODER
from dashboard.names import state
from dashboard.names.state import NamesRequest

__all__ = ["attacks_on_offer", "is_typed", "pickers", "samples"]


def samples() -> NamesRequest:
    """Return the invented examples."""
    found = cache.name_samples()
    return NamesRequest(
        sentences="\n".join(found["sentences"]),
        names="\n".join(found["names"]),
        attack="probe_mlc",
    )


def attacks_on_offer() -> list[str]:
    """Return the trained attacks that ship and take less than a second a vector."""
    return [
        name
        for name, entry in INVERSION_ATTACKS.items()
        if entry.access in (Access.PAIRS, Access.QUERIES) and cache.shipped_settings(name, ENCODER)
    ]


def is_typed(request: NamesRequest) -> bool:
    """Return whether sentences or names are others than the examples."""
    examples = samples()
    return (request.sentences, request.names) != (examples.sentences, examples.names)


def pickers() -> None:
    """Draw what one types into, and the attack."""
    left, right = st.columns((3, 1))
    left.text_area(
        "Sentences, one a line",
        key=state.SENTENCES_KEY,
        height=210,
        persist_state="session",
        help="Each holds one of the names, or marks another one in [square brackets]; [name] "
        "stands for any name. What you type stays in the memory of this computer: it is not "
        "stored, logged or sent anywhere.",
    )
    right.text_area(
        "Names, one a line",
        key=state.NAMES_KEY,
        height=210,
        persist_state="session",
        help=f"First name and surname, or the surname alone; `Last, First` where the surname has "
        f"several words. Each is put into every sentence. From 2 to {MOST_NAMES}.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.pills(
            "Attack",
            attacks_on_offer(),
            key=state.ATTACK_KEY,
            required=True,
            wrap=True,
            persist_state="session",
            format_func=lambda name: INVERSION_ATTACKS[name].title,
            help="How the attacker turns a vector back into words. All of them were trained on "
            "encyclopaedia, novels and everyday sentences.",
        )
        st.button(
            "Examples",
            key="names-samples",
            icon=":material/restart_alt:",
            help="Sets sentences and names back to the invented examples",
            on_click=state.use_samples,
            args=(samples(),),
        )
