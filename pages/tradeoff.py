"""What does each defence save, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from core.studies.tradeoff_choice import choose, within
from dashboard import cache
from dashboard.controls import sample_buttons, sentence_input
from dashboard.inversion.answers import ENCODER
from dashboard.leakage import how_much_leaks
from dashboard.state import text
from dashboard.story.pinning import Noted, story_button
from dashboard.tradeoff import controls, explain, finding, pinned, sides, state, views

found = cache.tradeoff(ENCODER)
address = state.adopt(found)

headline = Noted(st.container())
task = controls.task_picker(found)
reads, share = controls.reads_picker(found), controls.share_picker()
most = controls.limit_picker(found)
address.warn_of_refused()
left = within(found, most)  # all but what takes longer
state.adopt_click(left, views.figure_key(task, reads, most))
shown = choose(left, task, share, reads).shown
state.follow(shown)
finding.finding(headline, left, task, share, reads)
if said := finding.time_said(found, left, most, shown):
    headline.caption(said)
with headline:
    story_button(
        "tradeoff",
        address.query(),
        headline,
        lambda _: pinned.seen(left, task, share, reads, most),
    )
views.picture(found, left, task, reads, most)
how_much_leaks("tradeoff", "tradeoff")

st.header("All tasks", anchor=False)
views.all_tasks(left, share, reads)
explain.how_it_is_computed(found)

st.header("Two settings on your sentence, side by side", anchor=False)
sentence_input()
sample_buttons()
buttons = st.container(horizontal=True, gap="xsmall")
sides.side_by_side(found, task, reads, sides.text_or_none(text()))
sides.link_and_noise(buttons, address)  # which holds what was composed just now

st.header("The numbers", anchor=False)
views.table(left, task, reads)
explain.caveats()
