"""Does a model memorise a secret in its training texts? Plant a canary and watch."""

from __future__ import annotations

from functools import partial

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.studies.memorisation.summary import SHIPPED
from leakscope.dashboard import cache
from leakscope.dashboard.memorisation import controls, measured, state, views
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.state import is_presenting
from leakscope.dashboard.ui.toolbar import toolbar

address = state.address()
address.adopt()
views.adopt_memorise_job()

headline = st.container()
toolbar(partial(controls.show_link, address))
shipped = None
try:
    shipped = cache.memorisation() if SHIPPED.exists() else None
except CoreError as error:
    show_error(error, title="The measured results cannot be read")
if shipped is None:
    measured.unmeasured(headline)
else:
    show_finding(headline, measured.finding(shipped).finding, "memorisation")

address.warn_of_refused()
plant, audit = st.tabs(["Plant your own canary", "Audit of the privacy guarantee"])
with plant, st.container(key="stage" if is_presenting() else "bench"):
    try:
        request, texts = controls.request_controls()
        canary = controls.known_canary(str(state.choice("canary")))
        found = views.result_or_controls(request, texts, canary) if request else None
        if found is not None:
            views.exposure_growth(found)
            st.header("What sampling reveals", anchor=False)
            views.sampling_results(found)
    except CoreError as error:
        show_error(error, title="This canary cannot be planted")
is_own = controls.is_typed(str(state.choice("canary")))
pin_button(
    "memorisation",
    address.query(),
    lambda with_typed: measured.finding(shipped, with_typed=with_typed),
    has_typed=is_own,
)
command_button("memorisation", *measured.commands_of(shipped))

with audit:
    if shipped is not None and shipped.audited:
        measured.audit_results(shipped)
    else:
        st.info("This version ships no audit results.", icon=":material/fact_check:")
views.how_it_is_computed()
views.caveats()
