"""Which words does an attacker read from the embedding of one sentence?"""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion.sentence import check_sentence
from core.errors import CoreError
from dashboard import cache, markup
from dashboard.calm import show_error
from dashboard.controls import present_button, presenter_buttons, sample_buttons, sentence_input
from dashboard.inversion import answers, controls, explain, pinned, settings, state, views
from dashboard.leakage import how_much_leaks, invert_command
from dashboard.state import is_presenting, text
from dashboard.story.pinning import Noted, story_button

QUESTION = "Which words does the vector give away?"

address = state.address()
address.adopt()
answers.adopt_jobs()

# The finding comes first on the page and last in the script: it needs the answers.
headline = Noted(st.container())
if not is_presenting():
    sentence_input()
    sample_buttons()
    controls.attack_picker()
    with st.container(horizontal=True, vertical_alignment="center"):
        controls.stop_words_toggle()
        more = st.popover(
            "More settings",
            icon=":material/tune:",
            key="more-settings",
            on_change="rerun",
            help="Settings of the chosen attacks that need no new training",
        )
        present_button()
        bar = st.container(width="content")
        share = st.popover("Link", icon=":material/link:", help="An address that opens this view")
    if more.open:
        with more:
            settings.settings_of_chosen()
    with share:
        address.show_link()

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

with headline.skeleton(height=60):
    vector = cache.encoder(answers.ENCODER).encode([typed])
stage = st.container(key="stage" if is_presenting() else "bench")
with stage:
    strip = st.container()
    marks = st.container()
    versus = st.container()
    readings, charts = [], []
    for place, name in zip(views.side_by_side(len(chosen)), chosen, strict=True):
        with place.container(border=True, key=f"card-{name}"):
            views.attack_header(name)
            try:
                reading = answers.reading(answers.request_for(name, typed), vector)
                if reading is not None:
                    charts.append(views.reading_card(reading))
                    readings.append(reading)
            except CoreError as error:
                show_error(error, title="This attack cannot answer")
    if readings:
        views.show_finding(headline, readings)
        marks.html(markup.legend(readings))
    else:
        headline.title(QUESTION, anchor=False)
    with strip:
        views.vector_panel(vector)
    if len(readings) > 1:
        with versus:
            views.comparison(readings)
    for draw_chart in charts:
        draw_chart()

if is_presenting():
    presenter_buttons()
elif readings:
    is_own = pinned.is_typed(typed)
    with bar:
        story_button(
            "inversion",
            address.query(),
            headline,
            lambda with_typed: pinned.seen(readings, with_typed or not is_own),
            has_typed=is_own,
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Save these results")
        views.downloads(readings)
    commands = (invert_command(typed, name, answers.settings_for(name)) for name in chosen)
    how_much_leaks("inversion", *commands)
    explain.how_it_is_computed(chosen)
    explain.caveats()
