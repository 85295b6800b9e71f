"""Whose name is in a vector? Names put into each other's sentences, and read back."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.errors import CoreError
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.names import controls, explain, job, measured, pinned, probing, state, views
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

address = state.address(controls.samples(), controls.attacks_on_offer())
address.adopt()
job.adopt_names_job()

headline = Noted(st.container())
toolbar(address.show_link)
place = st.container()
st.header("Sentences and names of your own", anchor=False)
controls.pickers()
address.warn_of_refused()

request = state.chosen_request()
found = None
try:
    found = job.experiment(request)
except CoreError as error:
    show_error(error, title="These sentences and names cannot be used")
if found is None:
    headline.title(views.QUESTION, anchor=False)
else:
    views.finding(headline, found, request.attack)
    story_button(
        "names",
        address.query(),
        headline,
        partial(pinned.seen, found, request.attack),
        has_typed=controls.is_typed(request),
    )
    with place:
        views.heat_map(found, request.attack)
    how_much_leaks("names", "names")
    st.header("The words of a cell", anchor=False)
    views.cell_words(found, request)
    st.header("Which of these names is in the vector?", anchor=False)
    probing.probing(found)

st.header("Measured on news", anchor=False)
measured.measured()
explain.how_it_is_computed()
explain.caveats(measured.dependence())
