"""What does each defence save, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from core.studies.tradeoff_choice import choose, to_compare, within
from dashboard import cache
from dashboard.controls import sample_buttons, sentence_input, words_encoded
from dashboard.inversion.answers import ENCODER
from dashboard.leakage import how_much_leaks
from dashboard.remedies import show_remedies
from dashboard.state import text
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar
from dashboard.tradeoff import controls, explain, finding, pinned, sides, state, views

headline, bar = Noted(st.container()), st.container(key="bar")
shipped = cache.tradeoff(ENCODER)
own = controls.own_rows()
found = own or shipped
address = state.adopt(found)

task = controls.task_picker(found, controls.use_picker(found))
reads, share = controls.reads_picker(found), controls.share_picker()
most = controls.limit_picker(found)
address.warn_of_refused()
left = within(found, most)  # all but what takes longer
state.adopt_click(left, views.figure_key(task, reads, most))
choice = choose(left, task, share, reads)
state.follow(to_compare(left, task, choice))
finding.finding(headline, left, task, share, reads, is_own=own is not None)
if said := finding.time_said(found, left, most, choice.shown):
    headline.caption(said)
views.picture(found, left, task, reads, most)
if own is not None:
    views.shipped_beside(shipped, task, reads)
how_much_leaks("tradeoff", "tradeoff")

st.header("All tasks", anchor=False)
views.all_tasks(left, share, reads)
st.header("Beside the mathematics", anchor=False)
show_remedies()
explain.how_it_is_computed(found)

st.header("Two settings on your sentence, side by side", anchor=False)
sentence_input()
encoded = st.container()
sample_buttons()
buttons = st.container(horizontal=True, gap="xsmall")
typed = sides.text_or_none(text())
if typed is not None:
    words_encoded(encoded, cache.encoder(ENCODER), typed)
sides.side_by_side(found, task, reads, typed)
sides.noise_button(buttons)

st.header("The numbers", anchor=False)
with bar:
    toolbar(address.show_link)  # which holds what was composed just now
is_own = own is not None
story_button(
    "tradeoff",
    address.query(),
    headline,
    lambda with_typed: pinned.seen(
        left, task, share, reads, most, is_own=is_own, with_typed=with_typed
    ),
    has_typed=is_own or None,
)
views.table(left, task, reads)
explain.caveats()
