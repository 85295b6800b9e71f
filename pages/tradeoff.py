"""What does each defence protect, and what does it cost?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from leakscope.core.findings.tradeoff import defence_to_take
from leakscope.core.studies.tradeoff import summary
from leakscope.core.studies.tradeoff.choice import choose, setting_to_compare, within_time
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.tradeoff import comparison, controls, explain, state, views
from leakscope.dashboard.ui.controls import sample_buttons, sentence_input, show_encoded_words
from leakscope.dashboard.ui.finding import show_answer, show_figure, show_numbers
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.remedies import show_remedies
from leakscope.dashboard.ui.state import text
from leakscope.dashboard.ui.toolbar import toolbar

headline, bar = st.container(), st.container(key="bar")
rail, stage = st.container(key="beside").columns([1, 3], gap="medium")
shipped = summary.shipped_tradeoff()
with rail:
    pickers = st.container()
    own = controls.upload_tradeoff()
    found = own or shipped
    address = state.adopt_address(found)
    with pickers:
        task = controls.task_picker(found, controls.use_picker(found))
        reads, share = controls.reads_picker(found), controls.share_picker()
        most = controls.limit_picker(found)
address.warn_of_refused()
left = within_time(found, most)  # points within the time limit
name = views.figure_name(task, reads, most)
state.adopt_click(left, f"{name}-figure")
choice = choose(left, task, share, reads)
state.follow_headline(setting_to_compare(left, task, choice))
is_own = own is not None
answer_of = partial(
    defence_to_take,
    task=task,
    share=share,
    reads=reads,
    most=most,
    rings=state.compared_points(left),
    is_own=is_own,
)
answer = answer_of(found)
with stage:
    show_figure(st, answer, name, on_select="rerun", selection_mode="points")
    views.figure_notes(left, task, reads)
if own is not None:
    views.shipped_figure(shipped, task, reads)

evidence, on_sentence, tasks, remedies, numbers = st.tabs(
    ["The evidence", state.ON_SENTENCE, "All tasks", "Other protection", "The numbers"],
    key=state.TAB_KEY,
    on_change="rerun",
)
with evidence:
    with show_answer(headline, answer, below=st.container(), n_open=2):
        views.unmeasured_notes(found, left, task, reads)
    views.show_guarantee(st, left, choice)
    show_numbers(st, answer, "tradeoff-answer")
    command_button("tradeoff", "tradeoff")
with tasks:
    views.best_settings_table(left, share, reads)
with remedies:
    show_remedies()
with on_sentence:
    sentence_input()
    encoded = st.container()
    buttons = sample_buttons()
    typed = comparison.text_or_none(text())
    if typed is not None:
        show_encoded_words(encoded, cache.encoder(ENCODER), typed)
    comparison.compare_settings(found, task, reads, typed)
    comparison.noise_button(buttons)

with bar:
    toolbar(address.show_link)  # its link contains the chain composed above
pin_button(
    "tradeoff",
    address.query(),
    lambda with_typed: views.pinned(answer_of, found, is_own=is_own, with_typed=with_typed),
    has_typed=is_own or None,
)
with numbers:
    views.points_table(left, task, reads)
explain.how_it_is_computed(found)
explain.caveats()
