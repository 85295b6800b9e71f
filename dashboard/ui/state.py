"""The visitor's state that all pages share: the sentence and the presentation mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.dashboard import cache
from leakscope.dashboard.address import Parameter

_PAGE = "_page"
TEXT_KEY = "sentence"
AREA_KEY = "text-area"
SEEN_KEY = "_seen_text"
"""The text for which the control was last drawn; absent if another text was set since."""


def text_parameter() -> Parameter:
    """Build the address parameter of the sentence; its default is the first sample."""
    return Parameter(
        name="text", key=TEXT_KEY, default=cache.samples()[0]["text"], typed_in=(AREA_KEY,)
    )


def text() -> str:
    """Return the visitor's current sentence from the session."""
    return str(st.session_state.get(TEXT_KEY, ""))


def set_text(value: str) -> None:
    """Replace the session's sentence, as a callback or before its control is drawn."""
    st.session_state[TEXT_KEY] = value
    st.session_state.pop(SEEN_KEY, None)


def open_page(name: str) -> None:
    """Store the name of the page that is being drawn in the session."""
    st.session_state[_PAGE] = name


def current_page() -> str:
    """Return the name of the page that is being drawn."""
    return str(st.session_state.get(_PAGE, "overview"))


def is_presenting() -> bool:
    """Return whether the presentation mode is on; `?present=1` turns it on at the start."""
    if "_presenting" not in st.session_state:
        st.session_state["_presenting"] = st.query_params.get("present") == "1"
    return bool(st.session_state.get("_presenting", False))


def present(value: bool) -> None:
    """Turn the presentation mode on (True) or off (False)."""
    st.session_state["_presenting"] = value


def menu_choice(key: str) -> Any:
    """Return the entry picked from a menu; to be called within the menu's callback."""
    return st.session_state[key]


def forget_widgets(prefix: str) -> None:
    """Delete the session values of controls whose key starts with a prefix."""
    for key in [k for k in st.session_state if str(k).startswith(prefix)]:
        del st.session_state[key]


def keep_choice(key: str, options: Sequence[object], at: int = 0) -> None:
    """Set a control to the option at `at` if its session value is not among the options."""
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[at]
