"""What leaks from your own vectors? Audit a file or a store, and see the rows that leak most."""

from __future__ import annotations

import streamlit as st

from leakscope.core.audit.summary import AuditSummary, example_summary
from leakscope.core.errors import CoreError
from leakscope.core.findings.audit import REMEDY
from leakscope.dashboard.audit import controls, job, state, views
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import is_presenting
from leakscope.dashboard.ui.toolbar import toolbar

address = state.address()
address.adopt()
job.adopt_audit_job()

headline = st.container()
bar = st.container()
reports = st.container(horizontal=True)
chart = st.container()
chosen, own = None, None
if not is_presenting():
    st.header("Your own vectors", anchor=False)
    address.warn_of_refused()
try:
    chosen = None if is_presenting() else controls.source_controls()
    own = job.report_for(chosen)
except CoreError as error:
    show_error(error, title="These vectors cannot be audited")

with bar:
    toolbar(address.show_link, None if own is None else REMEDY)

found: AuditSummary | None = None
try:
    found = example_summary() if own is None else AuditSummary.from_dict(own[1])
except CoreError as error:
    headline.title("What leaks from your own vectors?", anchor=False)
    show_error(error, title="The example cannot be loaded")
if found is not None:
    is_own, shown = own is not None, found
    is_chosen = chosen is not None and not is_own
    views.draw_answer(headline, chart, found, is_own=is_own, is_chosen=is_chosen)
    pin_button(
        "audit",
        address.query(),
        lambda with_words: views.pinned(shown, is_own=is_own, with_words=with_words),
        has_typed=True if is_own else None,
    )
    if own is not None:
        views.download_buttons(own[1], found, reports)
    if not is_chosen:
        views.personal_data(found)
        views.what_if_results(found)
        views.leaking_rows(found, is_own=is_own)
        views.untested_list(found, is_own=is_own)
command_button(
    "audit",
    *views.commands_of(chosen),
    about="Audits your vectors in a terminal. The second command is a gate for builds: it exits "
    "with 0 if it passes, 1 if more than an F1 of 30 leaks, and 2 if nothing could be measured.",
)
views.how_it_is_computed()
views.caveats()
