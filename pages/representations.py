"""Which encoder leaks least at equal utility?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from leakscope.core.attacks.inversion.sentence import check_sentence
from leakscope.core.errors import CoreError
from leakscope.core.figures.representations import encoder_title
from leakscope.core.findings.prose import plain
from leakscope.core.findings.representations import QUESTION, encoders_at, own_encoder
from leakscope.core.studies.inversion.representation_summary import Representations
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.representations import cards, controls, explain, own, state, views
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.ui.controls import (
    sample_buttons,
    sentence_input,
    show_encoded_words,
    uses_text_area,
)
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import text
from leakscope.dashboard.ui.toolbar import toolbar

headline, bar = st.container(), st.container()
main = st.container()
on_sentence, order, numbers, own_place = st.tabs(
    ["One sentence", "Corò's order", "The numbers", "Your own encoder"]
)
try:
    found: Representations | None = cache.representations()
except CoreError as error:
    found = None
    show_error(error, title="The results cannot be loaded")

with main:
    if found is not None:
        found = own.add_own_study(found)
    address = state.address(found)
    address.adopt()
    cards.adopt_try_job()
    own.adopt_own_job()
    address.warn_of_refused(f"Shown instead: {plain(controls.describe_replacements(address))}.")
with bar:
    toolbar(address.show_link)
# If the visitor's own encoder was measured, the page is about it: it is processed first, although
# it is drawn below the study's figure.
with own_place:
    measured = own.own_encoder_result()

points = []
view: Callable[[bool], PinnedView] | None = None
has_typed: bool | None = True
if measured is not None:
    show_finding(headline, own_encoder(measured), "measured-encoder")
    view = partial(views.pinned_own_encoder, measured)
elif found is None:
    headline.title(QUESTION, anchor=False)
with main:
    study = headline if measured is None else st.container()
    controls.encoder_picker(found)
    if found is not None:
        controls.measure_pickers(found)
        choice = state.encoder_comparison()
        points = choice.points(found)
        answer = encoders_at(found, choice)
        views.show_comparison(study, answer, points, st.container(), is_title=measured is None)
        if view is None:
            view, has_typed = partial(views.pinned, found, choice), views.has_own(choice) or None
    if view is not None:
        pin_button("representations", address.query(), view, has_typed=has_typed)
    if found is not None:
        command_button("representations", "representations", "classification", "inversion-bbc")
        if points:
            with order:
                views.thesis_ordering(points)
            with numbers:
                views.points_table(points)

with on_sentence:
    st.header("One sentence, inverted from each encoder", anchor=False)
    sentence_input("Type a sentence, then press the button below")
    encoded = st.container()
    sample_buttons()
    controls.try_pickers()
    request = state.try_request()
    try:
        typed = check_sentence(text())
        if ENCODER.name in request.encoders and uses_text_area():  # fitted encoders have no limit
            show_encoded_words(encoded, cache.encoder(ENCODER), typed, encoder_title(ENCODER.name))
        if not request.encoders:
            st.info("Choose an encoder above that can be fitted here.", icon=":material/ads_click:")
        elif ready := cards.prepared_encoders(request):
            answers = cards.read_from_encoders(typed, ready)
            best = views.strongest_scores(found)
            cards.scores_table(answers, best)
            cards.cards(answers, best)
    except CoreError as error:
        show_error(error, title="There is nothing to invert")
explain.how_it_is_computed(found, points)
explain.caveats()
