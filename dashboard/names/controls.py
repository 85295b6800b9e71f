"""The controls of the names page: sentences, names and attack."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.names.experiment import MOST_NAMES
from leakscope.core.protocols import Access
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.names import state
from leakscope.dashboard.names.state import NamesRequest


def sample_request() -> NamesRequest:
    """Build the request for the invented example sentences and names."""
    found = cache.name_samples()
    return NamesRequest(
        sentences="\n".join(found["sentences"]),
        names="\n".join(found["names"]),
        attack="probe_mlc",
    )


def selectable_attacks() -> list[str]:
    """Return the names of trained attacks that ship weights; each answers within a second."""
    return [
        name
        for name, entry in INVERSION_ATTACKS.items()
        if entry.access in (Access.PAIRS, Access.QUERIES) and cache.shipped_settings(name, ENCODER)
    ]


def is_typed(request: NamesRequest) -> bool:
    """Return whether a request's sentences or names differ from the examples."""
    examples = sample_request()
    return (request.sentences, request.names) != (examples.sentences, examples.names)


def input_controls() -> None:
    """Draw the inputs of sentences and names, and the selector of the attack."""
    left, right = st.columns((3, 1))
    left.text_area(
        "Sentences, one per line",
        key=state.SENTENCES_KEY,
        height=210,
        persist_state="session",
        help="Each sentence contains a listed name, or marks its own name in [square brackets]. "
        "Write [name] where any name may go. What you type stays in the memory of this computer: "
        "it is not stored, logged or sent anywhere.",
    )
    right.text_area(
        "Names, one per line",
        key=state.NAMES_KEY,
        height=210,
        persist_state="session",
        help="First name and surname, or the surname alone. Write `Last, First` if the surname "
        f"has several words. Each name is inserted into every sentence. 2 to {MOST_NAMES} names.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.pills(
            "Attack",
            selectable_attacks(),
            key=state.ATTACK_KEY,
            required=True,
            wrap=True,
            persist_state="session",
            format_func=lambda name: INVERSION_ATTACKS[name].title,
            help="How the attacker recovers words from a vector. All attacks were trained on an "
            "encyclopaedia, novels and everyday sentences.",
        )
        st.button(
            "Examples",
            key="names-samples",
            icon=":material/restart_alt:",
            help="Resets sentences and names to the invented examples",
            on_click=state.use_samples,
            args=(sample_request(),),
        )
