"""Download buttons, and the places on a page where they and the pin button are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

_PLACE, _PINS = "_place_of_files", "_place_of_pins"


def set_download_place(place: Any) -> None:
    """Set the container in which later download buttons are drawn, each with its description."""
    st.session_state[_PLACE] = place


def set_pin_place(place: Any) -> None:
    """Set the container in which the page's pin button is drawn."""
    st.session_state[_PINS] = place


def pin_place() -> Any:
    """Return the container for the pin button; the page itself by default."""
    return st.session_state.get(_PINS, st)


def reset_places() -> None:
    """Forget the containers of download and pin buttons, before a page is drawn."""
    for place in (_PLACE, _PINS):
        st.session_state.pop(place, None)


def save_json(make: Callable[[], str], name: str, *, about: str, is_here: bool = False) -> None:
    """Draw the button that downloads the text from `make` as `leakscope-<name>.json`.

    Parameters
    ----------
    is_here : bool
        Whether to draw the button here although the page has a container for downloads.
    """
    _button_container(about, is_here).download_button(
        "JSON",
        make,
        f"leakscope-{name}.json",
        "application/json",
        key=f"{name}-json",
        icon=":material/data_object:",
        help=about,
        on_click="ignore",
    )


def save_csv(
    make: Callable[[], str],
    name: str,
    *,
    about: str,
    is_disabled: bool = False,
    is_here: bool = False,
) -> None:
    """Draw the button that downloads the text from `make` as `leakscope-<name>.csv`."""
    _button_container(about, is_here).download_button(
        "CSV",
        # With a byte-order mark, spreadsheets decode the file as UTF-8.
        lambda: make().encode("utf-8-sig"),
        f"leakscope-{name}.csv",
        "text/csv",
        key=f"{name}-csv",
        icon=":material/table:",
        help=about,
        on_click="ignore",
        disabled=is_disabled,
    )


def _button_container(about: str, is_here: bool) -> Any:
    """Return the container of a download button; in a shared one, draw the description first."""
    place = None if is_here else st.session_state.get(_PLACE)
    if place is None:
        return st
    place.markdown(about)
    return place
