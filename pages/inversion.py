"""Which words does an attacker read from the embedding of one sentence?"""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.sentence import check_sentence
from core.errors import CoreError
from dashboard import cache, controls, markup, state
from dashboard.calm import plain, show_error
from dashboard.inversion import answers, explain, settings
from dashboard.inversion import views as panels
from dashboard.links import link

SAMPLES = cache.samples()
unknown = state.adopt_link(SAMPLES[0]["text"], ("probe_mlc", "msp"))
answers.adopt_jobs()

# The finding comes first on the page and last in the script: it needs the answers.
headline = st.container()
if not state.is_presenting():
    controls.sentence_input()
    controls.sample_buttons()
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
        controls.present_button()
        share = st.popover("Link", icon=":material/link:", help="An address that opens this view")
    if more.open:
        with more:
            settings.settings_of_chosen()
    with share:
        query = [("text", state.text()), *(("attack", name) for name in state.chosen_attacks())]
        link("inversion", query + [("stop_words", "1")] * state.counts_stop_words())

state.drop_stale_link()
text, chosen = state.text(), state.chosen_attacks()
answers.stop_old_jobs(text)
if unknown:
    names = ", ".join(INVERSION_ATTACKS)
    st.warning(
        plain(f"The address names attacks that do not exist: {', '.join(unknown)}. "
              f"There are {names}."),
        icon=":material/link_off:",
    )  # fmt: skip
try:
    check_sentence(
        text,
        counts_stop_words=state.counts_stop_words(),
        remedy="Type a word with content, or switch on “Count stop words”.",
    )
except CoreError as error:
    headline.title("Which words does the vector give away?", anchor=False)
    show_error(error, title="There is nothing to invert")
    st.stop()
if not chosen:
    headline.title("Which words does the vector give away?", anchor=False)
    st.info("Choose at least one attack.", icon=":material/ads_click:")
    st.stop()

with headline.skeleton(height=60):
    vector = cache.encoder(answers.ENCODER).encode([text])
stage = st.container(key="stage" if state.is_presenting() else "bench")
with stage:
    strip = st.container()
    marks = st.container()
    versus = st.container()
    readings, charts = [], []
    for place, name in zip(panels.side_by_side(len(chosen)), chosen, strict=True):
        with place.container(border=True, key=f"card-{name}"):
            panels.attack_header(name)
            try:
                reading = answers.reading(answers.request_for(name, text), vector)
                if reading is not None:
                    charts.append(panels.reading_card(reading))
                    readings.append(reading)
            except CoreError as error:
                show_error(error, title="This attack cannot answer")
    if readings:
        panels.show_finding(headline, readings)
        marks.html(markup.legend(readings))
    else:
        headline.title("Which words does the vector give away?", anchor=False)
    with strip:
        panels.vector_panel(vector)
    if len(readings) > 1:
        with versus:
            panels.comparison(readings)
    for draw_chart in charts:
        draw_chart()

if state.is_presenting():
    controls.presenter_buttons()
elif readings:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Save these results")
        panels.downloads(readings)
    explain.how_it_is_computed(chosen)
    explain.caveats()
