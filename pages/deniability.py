"""How deniable is each word of a sentence under d_χ-privacy, at every η?"""

from __future__ import annotations

import streamlit as st

from leakscope.core.defences.deniability.eta_choice import MECHANISM
from leakscope.core.defences.metric_dp.eta_grid import eta_steps
from leakscope.core.encoders.white_box import require_white_box
from leakscope.core.errors import CoreError
from leakscope.core.findings.prose import plain
from leakscope.core.text import check_text
from leakscope.dashboard import cache
from leakscope.dashboard.address import Address
from leakscope.dashboard.deniability import state, views
from leakscope.dashboard.inversion.pinned import is_typed
from leakscope.dashboard.server import compiling
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.ui import controls, encoder_choice
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_answer, show_figure, show_numbers
from leakscope.dashboard.ui.guarantee import guarantees_of
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import is_presenting, text, text_parameter
from leakscope.dashboard.ui.toolbar import toolbar

encoder_choice.adopt_encoder_link()
on = encoder_choice.chosen_encoder()
headline = st.container()
try:
    with headline.skeleton(height=60):
        encoder = require_white_box(cache.encoder(on), "Deniability")
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
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
    samples = controls.sample_buttons()
eta = views.eta_slider(encoder.dimension)
with st.container() if is_presenting() else samples:
    views.draw_again_button()
if not is_presenting():
    with samples.popover(
        "Encoder", icon=":material/memory:", help="The encoder whose tokens are protected"
    ):
        encoder_choice.encoder_picker()
stage = st.container(key="stage" if is_presenting() else "bench")


def show_link() -> None:
    """Draw the URL of the view, which does not contain the noise."""
    address.show_link(encoder_choice.address().query())
    st.caption("Each opening draws noise of its own.")


toolbar(show_link)
address.warn_of_refused()
encoder_choice.address().warn_of_refused()

typed = text()
try:
    check_text(typed)
    with headline:
        compiling.wait_for_loops()
    with headline.skeleton(height=60):
        sentence = views.deniable_sentence(typed, encoder, on)
        statistics = cache.token_statistics(on)
        engine = cache.deniability_engine(on)
        released = sentence.privatised(engine, eta, state.noise_seed())
        finding = views.finding(sentence, eta, steps, on, released)
except CoreError as error:
    headline.title("How much noise hides a word?", anchor=False)
    show_error(error, title="This text cannot be privatised")
    st.stop()

if not is_presenting():
    controls.show_encoded_words(encoded, encoder, typed)
found = sentence.at(eta)
with stage:
    card, curves = st.columns(2, gap="medium")
    with card.container(border=True):
        views.privatised_card(sentence, released)
    show_figure(curves, finding, "curves")
show_answer(headline, finding, below=None if is_presenting() else st.container())
if encoder_choice.address().query():
    headline.caption(f"Encoder: {plain(on.name)}")
if is_presenting():
    controls.presenter_buttons()
    st.stop()
is_typed_encoder = encoder_choice.is_typed(on)
pin_button(
    "deniability",
    [*address.query(), *encoder_choice.address().query()],
    lambda with_typed: PinnedView(
        finding=views.finding(sentence, eta, steps, on, released, with_typed=with_typed),
        withheld=("encoder",) * (is_typed_encoder and not with_typed),
    ),
    has_typed=is_typed(typed) or is_typed_encoder,
)
show_numbers(st, finding, "deniability")

which, tokens, whole, words = st.tabs(
    ["Which η to choose", "Each token", "The whole vocabulary", "What replaces a word"]
)
with tokens:
    views.token_table(found, sentence.n_draws)
if statistics is None:
    which.markdown(
        "A recommendation must cover tokens that you did not type, so all tokens of this encoder "
        "have to be measured once. This takes some minutes on a laptop. The result is saved on "
        "this computer."
    )
    with which:
        encoder_choice.measure_card(on)
    whole.info("Measure all tokens first, under “Which η to choose”.", icon=":material/memory:")
else:
    vocabulary, geometry = statistics
    with which:
        views.eta_choice_card(vocabulary, on, steps, typed)
    with whole:
        views.vocabulary_cards(vocabulary, geometry, eta)
with words:
    views.replacements_card()
views.downloads(typed, on, eta, found, sentence.n_draws)
command_button("deniability", *finding.commands, "replacements")
views.how_it_is_computed(guarantees_of(MECHANISM, eta, typed, on), eta)
views.caveats()
