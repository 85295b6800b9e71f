"""How deniable is each word of a sentence under d_χ-privacy, at every η?"""

from __future__ import annotations

import streamlit as st

from core.defences.metric_dp.eta_grid import eta_steps
from core.encoders.white_box import require_white_box
from core.errors import CoreError
from core.text import check_text
from dashboard import cache, compiling, controls, encoder_choice
from dashboard.address import Address
from dashboard.calm import plain, show_error
from dashboard.deniability import choice, explain, pinned, replaced, state, views
from dashboard.deniability.eta import draw_again_button, eta_slider
from dashboard.inversion.pinned import is_typed
from dashboard.leakage import deniability_command, how_much_leaks
from dashboard.promise import promises_of, show_promises
from dashboard.state import is_presenting, text, text_parameter
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

encoder_choice.adopt_encoder_link()
on = encoder_choice.chosen_encoder()
headline, bar = Noted(st.container()), st.container()
try:
    with headline.skeleton(height=60):
        encoder = require_white_box(cache.encoder(on), "deniability")
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    with bar:
        address = Address("deniability", (text_parameter(),))
        toolbar(lambda: address.show_link(encoder_choice.address().query()))
    show_error(error, title="This encoder cannot be used here")
    encoder_choice.encoder_picker()
    st.stop()
steps = eta_steps(encoder.dimension)
state.keep_eta(75.0 * encoder.dimension / 384, steps)
address = state.address(steps)
address.adopt()

if not is_presenting():
    controls.sentence_input()
    encoded = st.container()
    controls.sample_buttons()
eta = eta_slider(encoder.dimension)
with st.container(horizontal=True, vertical_alignment="center"):
    draw_again_button()
    if not is_presenting():
        with st.popover("Encoder", icon=":material/memory:", help="Whose tokens are protected"):
            encoder_choice.encoder_picker()
with bar:
    toolbar(lambda: address.show_link(encoder_choice.address().query()))
address.warn_of_refused()
encoder_choice.address().warn_of_refused()

typed = text()
try:
    check_text(typed)
    with headline:
        compiling.wait_for_loops()
    with headline.skeleton(height=60):
        sentence = views.opened_sentence(typed, encoder, on)
        statistics = cache.token_statistics(on)
        promises = promises_of("text_to_text", eta, typed, on)
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    show_error(error, title="This text cannot be privatised")
    st.stop()

if not is_presenting():
    controls.words_encoded(encoded, encoder, typed)
title, beside = views.finding(sentence, eta, choice.measured_tradeoff(on))
headline.title(title, anchor=False)
headline.markdown(beside)
show_promises(promises, headline)
if encoder_choice.address().query():
    told = headline.typed_caption if encoder_choice.is_typed(on) else headline.caption
    told(f"Encoder: {plain(on.name)}")
found = sentence.at(eta)
with st.container(key="stage" if is_presenting() else "bench"):
    with st.container(border=True):
        views.privatised_card(sentence, eta, on)
    views.curves_card(sentence, eta, steps, statistics and statistics[0])
if is_presenting():
    controls.presenter_buttons()
    st.stop()
known = statistics and statistics[0]
story_button(
    "deniability",
    [*address.query(), *encoder_choice.address().query()],
    headline,
    lambda with_typed: pinned.seen(
        sentence, eta, steps, on, known, text=typed, with_typed=with_typed
    ),
    has_typed=is_typed(typed) or encoder_choice.is_typed(on),
)

st.header("Each token, and what it turns into", anchor=False)
views.token_table(found, sentence.n_draws)
st.header("Which η to take", anchor=False)
if statistics is None:
    st.markdown(
        "A recommendation must hold for the tokens that were not typed, so all tokens of this "
        "encoder have to be measured once: some minutes on a laptop. The result is kept on this "
        "computer."
    )
    encoder_choice.measure_card(on)
else:
    vocabulary, geometry = statistics
    choice.eta_choice_card(vocabulary, on, steps, typed)
    st.header("The whole vocabulary", anchor=False)
    views.vocabulary_cards(vocabulary, geometry, eta)
replaced.show()
views.downloads(typed, on, eta, found, sentence.n_draws)
how_much_leaks("deniability", deniability_command(typed, eta, on.name), "deniability")
explain.how_it_is_computed(promises, eta)
explain.caveats()
