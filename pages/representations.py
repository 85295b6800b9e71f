"""Which way of turning text into vectors leaks least at equal usefulness?"""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion.sentence import check_sentence
from core.errors import CoreError
from core.studies.representation_summary import Representations
from dashboard import cache, controls, state
from dashboard.calm import plain, show_error
from dashboard.representations import cards as representation_cards
from dashboard.representations import controls as representation_controls
from dashboard.representations import explain as explain_representations
from dashboard.representations import finding as representation_finding
from dashboard.representations import job as representation_jobs
from dashboard.representations import state as representation_state
from dashboard.representations import views as representation_views

headline = st.container()
try:
    found: Representations | None = cache.representations()
except CoreError as error:
    found = None
    show_error(error, title="The measured rows are not here")

refused = representation_state.adopt_representation_link(cache.samples()[0]["text"], found)
representation_jobs.adopt_try_job()
if refused:
    st.warning(
        f"The address asks for what is not measured or offered here: {plain(', '.join(refused))}. "
        f"Shown instead: {plain(representation_controls.standing(refused))}.",
        icon=":material/link_off:",
    )

points = []
representation_controls.encoder_picker(found)
if found is None:
    headline.title(representation_finding.QUESTION, anchor=False)
else:
    representation_controls.measure_pickers(found)
    points = representation_views.shown_points(found)
    representation_finding.finding(headline, found, points)
    representation_views.picture(points)
    if points:
        st.header("Does the order that Corò (2022) found hold?", anchor=False)
        representation_views.order(points)
        st.header("The numbers, beside those of Corò (2022)", anchor=False)
        representation_views.table(points)

st.header("See one sentence read from all of them", anchor=False)
controls.sentence_input("Type a sentence, then press the button below")
controls.sample_buttons()
representation_controls.try_pickers()
request = representation_state.try_request()
try:
    text = check_sentence(state.text())
    if not request.encoders:
        st.info("Choose an encoder above that can be fitted here.", icon=":material/ads_click:")
    elif ready := representation_jobs.prepared_encoders(request):
        answers = representation_cards.answers_of(text, ready)
        best = representation_views.most_read(found)
        representation_cards.overview(answers, best)
        representation_cards.cards(answers, best)
except CoreError as error:
    show_error(error, title="There is nothing to invert")
representation_state.drop_stale_representation_link()
explain_representations.how_it_is_computed(found, points)
explain_representations.caveats()
