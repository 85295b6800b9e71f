"""What does each defence save, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from core.studies.tradeoff_choice import choose
from core.text import check_text
from dashboard import cache
from dashboard.calm import show_error
from dashboard.controls import sample_buttons, sentence_input
from dashboard.inversion.answers import ENCODER
from dashboard.leakage import how_much_leaks
from dashboard.state import text
from dashboard.tradeoff import controls, explain, state, views

found = cache.tradeoff(ENCODER)
address = state.address(found.tasks)
address.adopt()

headline = st.container()
task, share = controls.task_picker(found), controls.share_picker()
address.warn_of_refused()
state.adopt_click(views.figure_key(task))
state.follow(found.points.index(choose(found, task, share).shown))
views.finding(headline, found, task, share)
views.picture(found, task)
how_much_leaks("tradeoff", "tradeoff")

st.header("All tasks", anchor=False)
views.all_tasks(found, share)
explain.how_it_is_computed(found)

st.header("See it on a sentence", anchor=False)
chosen = controls.setting_picker(found)
sentence_input()
sample_buttons()
try:
    views.example(found.points[chosen], check_text(text()))
except CoreError as error:
    show_error(error, title="There is nothing to protect")

st.header("The numbers", anchor=False)
views.table(found, task)
explain.caveats()
