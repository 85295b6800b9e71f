"""What every page offers: to be presented, to be linked to, and to be saved."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import downloads
from dashboard.controls import present_button
from dashboard.state import is_presenting

__all__ = ["toolbar"]


def toolbar(show_link: Callable[[], None]) -> None:
    """Draw Present, Link and Save; what the page lets save from now on stands under Save.

    Parameters
    ----------
    show_link : callable
        Draws the address of the present view, or says why there is none.
    """
    if is_presenting():
        return
    with st.container(horizontal=True, gap="xsmall", width="content", key="toolbar"):
        present_button()
        with st.popover("Link", icon=":material/link:", help="An address that opens this view"):
            show_link()
        save = st.popover("Save", icon=":material/download:", help="What this page shows, as files")
    save.caption(
        "A figure is saved by the camera in its corner, which comes up when you point at it."
    )
    downloads.collect_in(save)
