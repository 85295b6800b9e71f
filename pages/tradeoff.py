"""What does each defence save, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from core.studies.tradeoff_choice import choose
from dashboard import cache
from dashboard.controls import sample_buttons, sentence_input
from dashboard.inversion.answers import ENCODER
from dashboard.leakage import how_much_leaks
from dashboard.state import text
from dashboard.tradeoff import controls, explain, finding, sides, state, views

found = cache.tradeoff(ENCODER)
address = state.adopt(found)

headline = st.container()
task = controls.task_picker(found)
reads, share = controls.reads_picker(found), controls.share_picker()
address.warn_of_refused()
state.adopt_click(found, views.figure_key(task, reads))
state.follow(choose(found, task, share, reads).shown)
finding.finding(headline, found, task, share, reads)
views.picture(found, task, reads)
how_much_leaks("tradeoff", "tradeoff")

st.header("All tasks", anchor=False)
views.all_tasks(found, share, reads)
explain.how_it_is_computed(found)

st.header("Two settings on your sentence, side by side", anchor=False)
sentence_input()
sample_buttons()
buttons = st.container(horizontal=True, gap="xsmall")
sides.side_by_side(found, task, reads, sides.text_or_none(text()))
sides.link_and_noise(buttons, address)  # which holds what was composed just now

st.header("The numbers", anchor=False)
views.table(found, task, reads)
explain.caveats()
