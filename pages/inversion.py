"""Which words does an attacker recover from the embedding of one sentence?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from leakscope.core.attacks.inversion.sentence import check_sentence
from leakscope.core.errors import CoreError
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers, controls, explain, personal, pinned, state, views
from leakscope.dashboard.server import compiling
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui.controls import (
    presenter_buttons,
    sample_buttons,
    sentence_input,
    show_encoded_words,
)
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_answer, show_numbers
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import is_presenting, text
from leakscope.dashboard.ui.toolbar import toolbar

QUESTION = "Which words leak from a vector?"

address = state.address()
address.adopt()
answers.adopt_jobs()
personal.adopt_job()

# The finding needs the answers, so it is drawn last, into a container at the top of the page.
# The container keeps its height: the controls below do not move while the visitor types.
stage = st.container(key="stage" if is_presenting() else "bench")
headline = stage.container(key="headline")
typing = stage.container()
answer = stage.container(key="answer")
bar = st.container()
if is_presenting():
    presenter_buttons()
else:
    with typing:
        sentence_input()
        encoded = st.container()
    sample_buttons()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        controls.attack_picker()
        more = st.popover(
            "More settings",
            icon=":material/tune:",
            key="more-settings",
            on_change="rerun",
            help="Settings of the chosen attacks that take effect without new training",
        )
        controls.stop_words_toggle()
    with bar:
        toolbar(address.show_link)
    if more.open:
        with more:
            controls.chosen_attack_settings()

typed, chosen = text(), state.chosen_attacks()
answers.stop_old_jobs(typed)
address.warn_of_refused()
try:
    check_sentence(
        typed,
        counts_stop_words=state.counts_stop_words(),
        remedy="Type a word that is not a stop word, or switch on “Count stop words”.",
    )
except CoreError as error:
    headline.title(QUESTION, anchor=False)
    show_error(error, title="There is nothing to invert")
    st.stop()
if not chosen:
    headline.title(QUESTION, anchor=False)
    st.info("Choose at least one attack.", icon=":material/ads_click:")
    st.stop()

with compiling.opening_encoder(headline, answers.ENCODER):
    vector = cache.encoder(answers.ENCODER).encode([typed])
if not is_presenting():
    show_encoded_words(encoded, cache.encoder(answers.ENCODER), typed)
with st.container(key="stage-cards" if is_presenting() else "bench-cards"):
    link, strip, versus = st.container(), st.container(), st.container()
    readings, charts = [], []
    st.header("What each attack recovers", anchor=False)
    for place, name in zip(views.card_columns(len(chosen)), chosen, strict=True):
        with place.container(border=True, key=f"card-{name}"):
            views.attack_header(name)
            try:
                reading = answers.reading_or_controls(answers.request_for(name, typed), vector)
                if reading is not None:
                    card = views.reading_card(reading, with_sentence=len(chosen) > 1)
                    charts.append(card)
                    readings.append(reading)
            except CoreError as error:
                show_error(error, title="This attack cannot answer")
    if readings:
        finding = pinned.finding(readings)
        views.show_answer(answer, readings)
        show_answer(headline, finding, below=link)
        with link:
            views.names_link(readings)
    else:
        headline.title(QUESTION, anchor=False)
    with strip:
        views.vector_panel(vector)
    if len(readings) > 1:
        with versus:
            views.comparison_chart(finding)
    for draw_chart in charts:
        draw_chart()

if not is_presenting() and readings:
    show_numbers(st.container(), finding, "sentence")
    pin_button(
        "inversion",
        address.query(),
        partial(pinned.pinned, readings),
        has_typed=pinned.is_typed(typed),
    )
    views.downloads(readings)
    personal.personal_panel(typed, vector, readings)
    command_button("inversion", *(pinned.command_of(name, typed) for name in chosen))
    explain.many_sentences()
    explain.how_it_is_computed(chosen)
    explain.caveats()
