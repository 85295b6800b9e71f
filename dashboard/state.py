"""What one visitor has chosen on every page: the sentence, and whether it is presented."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import cache
from dashboard.address import Parameter

__all__ = [
    "SEEN_KEY",
    "AREA_KEY",
    "TEXT_KEY",
    "forget_widgets",
    "is_presenting",
    "keep_choice",
    "picked",
    "present",
    "set_text",
    "text",
    "text_parameter",
]

TEXT_KEY = "sentence"
AREA_KEY = "text-area"
SEEN_KEY = "_seen_text"
"""The text that the control was drawn for; none where another was set."""


def text_parameter() -> Parameter:
    """Return the sentence as a parameter of an address; the first sample unless it says more."""
    return Parameter(
        name="text", key=TEXT_KEY, default=cache.samples()[0]["text"], typed_in=(AREA_KEY,)
    )


def text() -> str:
    """Return the sentence under attack."""
    return str(st.session_state.get(TEXT_KEY, ""))


def set_text(value: str) -> None:
    """Replace the sentence, from a callback or before its control is drawn."""
    st.session_state[TEXT_KEY] = value
    st.session_state.pop(SEEN_KEY, None)


def is_presenting() -> bool:
    """Return whether the controls are hidden and the text is large; `?present=1` starts so."""
    if "_presenting" not in st.session_state:
        st.session_state["_presenting"] = st.query_params.get("present") == "1"
    return bool(st.session_state.get("_presenting", False))


def present(value: bool) -> None:
    """Enter or leave the presentation."""
    st.session_state["_presenting"] = value


def picked(key: str) -> Any:
    """Return what was picked from a menu, within its callback."""
    return st.session_state[key]


def forget_widgets(prefix: str) -> None:
    """Let controls whose key starts so take their values anew."""
    for key in [k for k in st.session_state if str(k).startswith(prefix)]:
        del st.session_state[key]


def keep_choice(key: str, options: Sequence[object], at: int = 0) -> None:
    """Let a choice stand if it is among the options, else take the one at this place of them."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[at]
