"""Which way of turning text into vectors leaks least at equal usefulness?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.attacks.inversion.sentence import check_sentence
from core.errors import CoreError
from core.figures.representations import encoder_title
from core.studies.representation_summary import Representations
from dashboard import cache
from dashboard.calm import plain, show_error
from dashboard.controls import has_area, sample_buttons, sentence_input, words_encoded
from dashboard.inversion.answers import ENCODER
from dashboard.leakage import how_much_leaks
from dashboard.representations import (
    cards,
    controls,
    explain,
    finding,
    job,
    own,
    pinned,
    state,
    views,
)
from dashboard.state import text
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

headline, bar, chart = Noted(st.container()), st.container(), st.container()
main, own_place = st.container(), st.container()
try:
    found: Representations | None = cache.representations()
except CoreError as error:
    found = None
    show_error(error, title="The measured rows are not here")

with main:
    if found is not None:
        found = own.beside_shipped(found)
    address = state.address(found)
    address.adopt()
    job.adopt_try_job()
    own.adopt_own_job()
    address.warn_of_refused(f"Shown instead: {plain(controls.standing(address))}.")
with bar:
    toolbar(address.show_link)
# An encoder that the visitor had measured here is what the page is about: it comes first in the
# script, and stands below the figure of the study.
with own_place:
    st.header("An encoder of your own", anchor=False)
    measured = own.measured()

points = []
with main:
    controls.encoder_picker(found)
    if found is not None:
        controls.measure_pickers(found)
        points = views.shown_points(found)
        place = headline.below(st.container())
    has_typed: bool | None
    if measured is not None:
        finding.measured_finding(headline, measured[0], measured[-1])
        see, has_typed = partial(pinned.seen_measured, measured), True
        with chart:
            views.own_picture(measured)
    elif found is None:
        headline.title(finding.QUESTION, anchor=False)
    else:
        finding.finding(headline, place, found, points)
        see, has_typed = partial(pinned.seen, points), pinned.has_own(points) or None
    if found is not None or measured is not None:
        story_button("representations", address.query(), headline, see, has_typed=has_typed)
    if found is not None:
        with chart:
            views.picture(points)
        how_much_leaks("representations", "representations", "classification", "inversion-bbc")
        if points:
            st.header("Does the order that Corò (2022) found hold?", anchor=False)
            views.order(points)
            st.header("The numbers, beside those of Corò (2022)", anchor=False)
            views.table(points)

st.header("See one sentence read from all of them", anchor=False)
sentence_input("Type a sentence, then press the button below")
encoded = st.container()
sample_buttons()
controls.try_pickers()
request = state.try_request()
try:
    typed = check_sentence(text())
    if ENCODER.name in request.encoders and has_area():  # what is fitted here reads all words
        words_encoded(encoded, cache.encoder(ENCODER), typed, encoder_title(ENCODER.name))
    if not request.encoders:
        st.info("Choose an encoder above that can be fitted here.", icon=":material/ads_click:")
    elif ready := job.prepared_encoders(request):
        answers = cards.answers_of(typed, ready)
        best = views.most_read(found)
        cards.overview(answers, best)
        cards.cards(answers, best)
except CoreError as error:
    show_error(error, title="There is nothing to invert")
explain.how_it_is_computed(found, points)
explain.caveats()
