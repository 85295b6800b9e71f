"""The buttons that save what a page shows; a file is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

__all__ = ["collect_in", "forget_place", "pin_in", "place_of_pins", "save_csv", "save_json"]

_PLACE, _PINS = "_place_of_files", "_place_of_pins"


def collect_in(place: Any) -> None:
    """Have what is saved from now on stand in a place, under what it is."""
    st.session_state[_PLACE] = place


def pin_in(place: Any) -> None:
    """Have the button that pins the view stand in a place."""
    st.session_state[_PINS] = place


def place_of_pins() -> Any:
    """Return where that button stands: where it is drawn, without a place for it."""
    return st.session_state.get(_PINS, st)


def forget_place() -> None:
    """Have both stand where they are drawn; to be called before a page is drawn."""
    for place in (_PLACE, _PINS):
        st.session_state.pop(place, None)


def save_json(make: Callable[[], str], name: str, *, about: str, is_here: bool = False) -> None:
    """Draw the button that saves `leakscope-<name>.json`.

    Parameters
    ----------
    is_here : bool
        It stands where it is drawn, though the page has a place for files.
    """
    _place(about, is_here).download_button(
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
    """Draw the button that saves `leakscope-<name>.csv`; `is_here` as in `save_json`."""
    _place(about, is_here).download_button(
        "CSV",
        # With a byte-order mark, spreadsheets read accents and other scripts rightly.
        lambda: make().encode("utf-8-sig"),
        f"leakscope-{name}.csv",
        "text/csv",
        key=f"{name}-csv",
        icon=":material/table:",
        help=about,
        on_click="ignore",
        disabled=is_disabled,
    )


def _place(about: str, is_here: bool) -> Any:
    """Return where a button stands; among others it needs to be told what it saves."""
    place = None if is_here else st.session_state.get(_PLACE)
    if place is None:
        return st
    place.markdown(about)
    return place
