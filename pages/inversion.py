"""Which words does an attacker read from the embedding of one sentence?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.attacks.inversion.sentence import check_sentence
from core.errors import CoreError
from dashboard import cache, compiling
from dashboard.calm import show_error
from dashboard.controls import (
    presenter_buttons,
    sample_buttons,
    sentence_input,
    words_encoded,
)
from dashboard.inversion import answers, controls, explain, measured, pinned, settings, state, views
from dashboard.leakage import how_much_leaks
from dashboard.state import is_presenting, text
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

QUESTION = "Which words does the vector give away?"

address = state.address()
address.adopt()
answers.adopt_jobs()

# The finding comes first on the page and last in the script: it needs the answers. Its place keeps
# its height, so that the controls below it stay where they are while one types.
stage = st.container(key="stage" if is_presenting() else "bench")
headline = Noted(stage.container(key="headline"))
answer = stage.container(key="answer")
bar = st.container()
if is_presenting():
    presenter_buttons()
else:
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
            help="Settings of the chosen attacks that need no new training",
        )
        controls.stop_words_toggle()
    with bar:
        toolbar(address.show_link)
    if more.open:
        with more:
            settings.settings_of_chosen()

typed, chosen = text(), state.chosen_attacks()
answers.stop_old_jobs(typed)
address.warn_of_refused()
try:
    check_sentence(
        typed,
        counts_stop_words=state.counts_stop_words(),
        remedy="Type a word with content, or switch on “Count stop words”.",
    )
except CoreError as error:
    headline.title(QUESTION, anchor=False)
    show_error(error, title="There is nothing to invert")
    st.stop()
if not chosen:
    headline.title(QUESTION, anchor=False)
    st.info("Choose at least one attack.", icon=":material/ads_click:")
    st.stop()

with compiling.opening(headline, answers.ENCODER):
    vector = cache.encoder(answers.ENCODER).encode([typed])
if not is_presenting():
    words_encoded(encoded, cache.encoder(answers.ENCODER), typed)
with st.container(key="stage-cards" if is_presenting() else "bench-cards"):
    link, strip, versus = st.container(), st.container(), st.container()
    readings, charts = [], []
    st.header("What each attack reads", anchor=False)
    for place, name in zip(views.side_by_side(len(chosen)), chosen, strict=True):
        with place.container(border=True, key=f"card-{name}"):
            views.attack_header(name)
            try:
                reading = answers.reading(answers.request_for(name, typed), vector)
                if reading is not None:
                    card = views.reading_card(reading, with_sentence=len(chosen) > 1)
                    charts.append(card)
                    readings.append(reading)
            except CoreError as error:
                show_error(error, title="This attack cannot answer")
    if readings:
        views.show_finding(headline, readings)
        views.show_answer(answer, readings)
        with link:
            views.names_link(readings)
    else:
        headline.title(QUESTION, anchor=False)
    with strip:
        views.vector_panel(vector)
    if len(readings) > 1:
        with versus:
            views.comparison(readings)
    for draw_chart in charts:
        draw_chart()

if not is_presenting() and readings:
    story_button(
        "inversion",
        address.query(),
        headline,
        partial(pinned.seen, readings),
        has_typed=pinned.is_typed(typed),
    )
    views.downloads(readings)
    how_much_leaks("inversion", *(pinned.command_of(name, typed) for name in chosen))
    measured.many_sentences()
    explain.how_it_is_computed(chosen)
    explain.caveats()
