"""What does each defence save, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from core.text import check_text
from dashboard import cache, controls, state
from dashboard.calm import show_error
from dashboard.deniability import state as defence_state
from dashboard.inversion import answers
from dashboard.tradeoff import views as trade

found = cache.tradeoff(answers.ENCODER)
defence_state.adopt_tradeoff_link(cache.samples()[0]["text"], found.tasks)

headline = st.container()
task = trade.task_picker(found)
defence_state.choose_first(found.points.index(trade.best_point(found, task)))
trade.finding(headline, found, task)
chosen = trade.picture(found, task)
trade.how_measured(found)

st.header("See it on a sentence", anchor=False)
chosen = trade.setting_picker(found, chosen)
controls.sentence_input()
controls.sample_buttons()
try:
    check_text(state.text())
    trade.example(found.points[chosen], state.text())
except CoreError as error:
    show_error(error, title="There is nothing to protect")

st.header("The numbers", anchor=False)
trade.table(found, task)
trade.caveats(found)
