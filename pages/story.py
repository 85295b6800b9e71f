"""The visitor's story: slides in order, presented or saved, and the stories that ship."""

from __future__ import annotations

import streamlit as st

from leakscope.dashboard.address import Address
from leakscope.dashboard.story import files, state, views
from leakscope.dashboard.ui.toolbar import link_popover


def show_link() -> None:
    """Draw the URL of this page, which does not contain the story."""
    st.caption("This link opens the page without your story. To share a story, save it as a file.")
    Address("story", ()).show_link()


headline = st.container()
found = state.story()
views.headline(headline, found)

with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
    if found.pins:
        views.present_button("own", found, is_primary=True)
    link_popover(show_link)
    if found.pins:
        files.save_buttons(found)
        st.button(
            "Start over",
            key="story-anew",
            icon=":material/restart_alt:",
            help="Removes all slides. What you did not save is lost",
            on_click=state.replace_story,
            args=(None,),
        )
if found.pins:
    st.header("Your slides", anchor=False)
    views.own_story()

st.header("Ready-made stories", anchor=False)
views.shipped_story_cards()
st.header("Open a story", anchor=False)
files.story_upload()
st.caption(
    "A story states which attackers were tried on which texts. Its numbers are measurements, not a "
    "certificate. Your story stays in the memory of the computer that runs Leakscope until you "
    "save it as a file. It is sent nowhere else."
)
