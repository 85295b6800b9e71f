"""What do you want to tell, and to whom? Views in an order, presented and taken along."""

from __future__ import annotations

import streamlit as st

from dashboard.address import Address
from dashboard.story import files, state, views
from dashboard.toolbar import link_popover


def show_link() -> None:
    """Draw the address of this page, which does not hold the story."""
    st.caption("It opens this page, not your story, which is in no address: save that as a file.")
    Address("story", ()).show_link()


headline = st.container()
found = state.story()
views.finding(headline, found)

with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
    if found.pins:
        views.present_button("own", found, is_primary=True)
    link_popover(show_link)
    if found.pins:
        files.save_buttons(found)
        st.button(
            "Begin anew",
            key="story-anew",
            icon=":material/restart_alt:",
            help="Takes all slides out. What you did not save is gone",
            on_click=state.start_with,
            args=(None,),
        )
if found.pins:
    st.header("Your slides", anchor=False)
    views.own_story()

st.header("Stories that ship", anchor=False)
views.shipped()
st.header("Open a story", anchor=False)
files.open_file()
st.caption(
    "A story names what was tried, on what, and by whom. It measures; it does not certify. Nothing "
    "of it is stored or sent anywhere unless you save it."
)
