"""How deniable is each word of a sentence under d_χ-privacy, at every η?"""

from __future__ import annotations

import streamlit as st

from core.encoders.white_box import require_white_box
from core.errors import CoreError
from core.text import check_text
from dashboard import cache, compiling, controls, encoder_choice, state
from dashboard.calm import plain, show_error
from dashboard.deniability import explain as explain_eta
from dashboard.deniability import state as defence_state
from dashboard.deniability import views as deniable
from dashboard.deniability.eta import draw_again_button, eta_slider, eta_steps
from dashboard.links import link

refused_encoder = encoder_choice.adopt_encoder_link()
on = encoder_choice.chosen_encoder()
headline = st.container()
try:
    with headline.skeleton(height=60):
        encoder = require_white_box(cache.encoder(on), "deniability")
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    show_error(error, title="This encoder cannot be used here")
    encoder_choice.encoder_picker()
    st.stop()
steps = eta_steps(encoder.dimension)
start = 75.0 * encoder.dimension / 384
refused = defence_state.adopt_eta_link(cache.samples()[0]["text"], start, steps)

if not state.is_presenting():
    controls.sentence_input()
    controls.sample_buttons()
eta = eta_slider(encoder.dimension)
with st.container(horizontal=True, vertical_alignment="center"):
    draw_again_button()
    if not state.is_presenting():
        controls.present_button()
        with st.popover("Link", icon=":material/link:", help="An address that opens this view"):
            query = [("text", state.text()), ("eta", f"{eta:g}")]
            link("deniability", [*query, *encoder_choice.link_part()])
        with st.popover("Encoder", icon=":material/memory:", help="Whose tokens are protected"):
            encoder_choice.encoder_picker()
defence_state.drop_stale_eta_link()
if refused:
    st.warning(
        f"The address asks for an η that does not exist here: it runs from {steps[0]:g} to "
        f"{steps[-1]:g}.",
        icon=":material/link_off:",
    )
if refused_encoder:
    st.warning(
        f"The address asks for the encoder {plain(refused_encoder)}, which was not measured on "
        "this computer. Type its name under Encoder to open it.",
        icon=":material/link_off:",
    )

text = state.text()
try:
    check_text(text)
    with headline:
        compiling.wait_for_loops()
    with headline.skeleton(height=60):
        sentence = deniable.opened_sentence(text, encoder, on)
        statistics = cache.token_statistics(on)
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    show_error(error, title="This text cannot be privatised")
    st.stop()

title, beside = deniable.finding(sentence, eta)
headline.title(title, anchor=False)
headline.markdown(beside)
if encoder_choice.link_part():
    headline.caption(f"Encoder: {plain(on.name)}")
found = sentence.at(eta)
with st.container(key="stage" if state.is_presenting() else "bench"):
    with st.container(border=True):
        deniable.privatised_card(sentence, eta, on)
    deniable.curves_card(sentence, eta, steps, statistics and statistics[0])
if state.is_presenting():
    controls.presenter_buttons()
    st.stop()

st.header("Each token, and what it turns into", anchor=False)
deniable.token_table(found, sentence.n_draws)
st.header("Find my η", anchor=False)
if statistics is None:
    st.markdown(
        "A recommendation must hold for the tokens that were not typed, so all tokens of this "
        "encoder have to be measured once: some minutes on a laptop. The result is kept on this "
        "computer."
    )
    encoder_choice.measure_card(on)
else:
    vocabulary, geometry = statistics
    st.markdown("Three rules. Each names the least noise that keeps it.")
    deniable.eta_choice_card(vocabulary, on, steps)
    st.header("The whole vocabulary", anchor=False)
    deniable.vocabulary_cards(vocabulary, geometry, eta)
with st.container(horizontal=True, vertical_alignment="center"):
    st.markdown("Save these results")
    deniable.downloads(text, on, eta, found, sentence.n_draws)
explain_eta.how_it_is_computed()
explain_eta.caveats()
