"""How deniable is each word of a sentence under d_χ-privacy, at every η?"""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion.token_words import require_white_box
from core.errors import CoreError
from core.text import check_text
from dashboard import answers, cache, controls, defence_state, deniable, explain_eta, state
from dashboard.calm import show_error
from dashboard.eta import draw_again_button, eta_slider, eta_steps
from dashboard.links import link

ENCODER = answers.ENCODER
encoder = require_white_box(cache.encoder(ENCODER), "deniability")
steps = eta_steps(encoder.dimension)
refused = defence_state.adopt_eta_link(cache.samples()[0]["text"], 75.0, steps)

headline = st.container()
if not state.is_presenting():
    controls.sentence_input()
    controls.sample_buttons()
eta = eta_slider(encoder.dimension)
with st.container(horizontal=True, vertical_alignment="center"):
    draw_again_button()
    if not state.is_presenting():
        controls.present_button()
        with st.popover("Link", icon=":material/link:", help="An address that opens this view"):
            link("deniability", [("text", state.text()), ("eta", f"{eta:g}")])
defence_state.drop_stale_eta_link()
if refused:
    st.warning(
        f"The address asks for an η that does not exist here: it runs from {steps[0]:g} to "
        f"{steps[-1]:g}.",
        icon=":material/link_off:",
    )

text = state.text()
try:
    check_text(text)
    with headline.skeleton(height=60):
        sentence = deniable.opened_sentence(text, encoder, ENCODER)
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    show_error(error, title="This text cannot be privatised")
    st.stop()

title, beside = deniable.finding(sentence, eta)
headline.title(title, anchor=False)
headline.markdown(beside)
found, vocabulary = sentence.at(eta), cache.vocabulary_deniability(ENCODER)
with st.container(key="stage" if state.is_presenting() else "bench"):
    with st.container(border=True):
        deniable.privatised_card(sentence, eta, ENCODER)
    deniable.curves_card(sentence, eta, steps, vocabulary)
if state.is_presenting():
    controls.presenter_buttons()
    st.stop()

st.header("Each token, and what it turns into", anchor=False)
deniable.token_table(found, sentence.n_draws)
st.header("Find my η", anchor=False)
st.markdown("Three rules. Each names the least noise that keeps it.")
deniable.eta_choice_card(vocabulary, ENCODER, steps)
st.header("The whole vocabulary", anchor=False)
deniable.vocabulary_cards(vocabulary, eta, ENCODER)
with st.container(horizontal=True, vertical_alignment="center"):
    st.markdown("Save these results")
    deniable.downloads(text, eta, found, sentence.n_draws)
explain_eta.how_it_is_computed()
explain_eta.caveats()
