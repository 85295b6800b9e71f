"""Whose name is in a vector? Names put into each other's sentences, and read back."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from dashboard.calm import plain, show_error
from dashboard.names import controls as names_controls
from dashboard.names import explain as explain_names
from dashboard.names import job as names_jobs
from dashboard.names import measured as names_measured
from dashboard.names import probing as names_probing
from dashboard.names import state as names_state
from dashboard.names import views as names_views

refused = names_state.adopt_names_link(names_controls.samples(), names_controls.attacks_on_offer())
names_jobs.adopt_names_job()

headline = st.container()
names_controls.controls()
names_state.drop_stale_names_link()
if refused:
    st.warning(
        f"The address asks for the attack {plain(refused)}, which is not offered here.",
        icon=":material/link_off:",
    )

request = names_state.chosen_request()
found = None
try:
    found = names_jobs.experiment(request)
except CoreError as error:
    show_error(error, title="These sentences and names cannot be used")
if found is None:
    headline.title(names_views.QUESTION, anchor=False)
else:
    names_views.finding(headline, found, request.attack)
    names_views.heat_map(found)
    st.header("The words of a cell", anchor=False)
    names_views.cell_words(found, request)
    st.header("Which of these names is in the vector?", anchor=False)
    names_probing.probing(found)

st.header("Measured on news", anchor=False)
names_measured.measured()
explain_names.how_it_is_computed()
explain_names.caveats(names_measured.dependence())
