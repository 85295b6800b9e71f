"""The buttons that save what a page shows; a file is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

__all__ = ["save_csv", "save_json"]


def save_json(make: Callable[[], str], name: str, *, about: str) -> None:
    """Draw the button that saves `leakscope-<name>.json`."""
    st.download_button(
        "JSON",
        make,
        f"leakscope-{name}.json",
        "application/json",
        key=f"{name}-json",
        icon=":material/data_object:",
        help=about,
        on_click="ignore",
    )


def save_csv(make: Callable[[], str], name: str, *, about: str, is_disabled: bool = False) -> None:
    """Draw the button that saves `leakscope-<name>.csv`."""
    st.download_button(
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
