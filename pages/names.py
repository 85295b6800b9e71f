"""Whose name is in a vector? Insert names into sentences and see which ones are recovered."""

from __future__ import annotations

from functools import partial

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.names import describe_dependence
from leakscope.dashboard.names import controls, job, state, views
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.toolbar import toolbar

address = state.address(controls.sample_request(), controls.selectable_attacks())
address.adopt()
job.adopt_names_job()

headline, more = st.container(), st.container()
toolbar(address.show_link)
st.header("Your own sentences and names", anchor=False)
controls.input_controls()
address.warn_of_refused()

request = state.chosen_request()
found = None
try:
    found = job.result_or_controls(request)
except CoreError as error:
    show_error(error, title="These sentences and names cannot be used")
if found is None:
    headline.title(views.QUESTION, anchor=False)
else:
    show_finding(headline, views.finding(found, request.attack), "names-found", below=more)
    pin_button(
        "names",
        address.query(),
        partial(views.pinned, found, request.attack),
        has_typed=controls.is_typed(request),
    )
    command_button("names", "names")

surnames, which, news = st.tabs(
    ["Each surname", "Which name is in the vector?", "Measured on news"]
)
if found is None:
    for tab in (surnames, which):
        tab.info("Shown once the names above have been tested.", icon=":material/play_arrow:")
else:
    map_place, words_place = surnames.columns([3, 2], gap="medium")
    with map_place:
        views.heat_map(found, request.attack)
    with words_place:
        views.cell_words(found, request)
    with which:
        views.probing_panel(found)
with news:
    views.study_results()
views.how_it_is_computed()
views.caveats(describe_dependence(views.news_rows()))
