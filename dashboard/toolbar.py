"""What every page offers: to be presented, linked to, saved, and pinned to a story."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import downloads
from dashboard.controls import present_button
from dashboard.leakage import why_pages_differ
from dashboard.state import is_presenting

__all__ = ["link_popover", "toolbar"]


def toolbar(show_link: Callable[[], None]) -> None:
    """Draw Present, Link and Save; what the page lets save from now on stands under Save.

    The button that pins the view to a story joins them, once the page knows what it shows.

    Parameters
    ----------
    show_link : callable
        Draws the address of the present view, or says why there is none.
    """
    if is_presenting():
        return
    with st.container(horizontal=True, gap="xsmall", width="content", key="toolbar"):
        present_button()
        link_popover(show_link)
        save = st.popover("Save", icon=":material/download:", help="What this page shows, as files")
        downloads.pin_in(st.container(width="content"))
        why_pages_differ()
    save.caption(
        "A figure is saved by the camera in its corner, which comes up when you point at it."
    )
    downloads.collect_in(save)


def link_popover(show_link: Callable[[], None]) -> None:
    """Draw Link, which shows the address of the present view, as `show_link` draws it."""
    with st.popover("Link", icon=":material/link:", help="An address that opens this view"):
        show_link()
