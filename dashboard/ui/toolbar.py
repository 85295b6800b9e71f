"""The toolbar of every page: what to do, Present, Link, Save and the pin button."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from leakscope.core.pages import PAGES
from leakscope.dashboard.ui import downloads
from leakscope.dashboard.ui.controls import present_button
from leakscope.dashboard.ui.leakage import why_pages_differ
from leakscope.dashboard.ui.state import current_page, is_presenting


def toolbar(show_link: Callable[[], None], advice: str | None = None) -> None:
    """Draw the page's advice, the buttons Present, Link and Save, and the pin button's place.

    Later downloads go under Save.

    The page adds its pin button once it knows what it shows.

    Parameters
    ----------
    show_link : callable
        Draws the address of the current view, or why there is none.
    advice : str, optional
        What to do with the answer; by default, that of the page.
    """
    if is_presenting():
        return
    advice = PAGES[current_page()].advice if advice is None else advice
    if advice:
        st.markdown(f"**What to do.** {advice}")
    with st.container(horizontal=True, gap="xsmall", width="content", key="toolbar"):
        present_button()
        link_popover(show_link)
        save = st.popover("Save", icon=":material/download:", help="Download what this page shows")
        downloads.set_pin_place(st.container(width="content"))
        why_pages_differ()
    save.caption("To save a figure, point at it and click the camera in its corner.")
    downloads.set_download_place(save)


def link_popover(show_link: Callable[[], None]) -> None:
    """Draw the Link popover; `show_link` draws its content."""
    with st.popover("Link", icon=":material/link:", help="An address that opens this view"):
        show_link()
