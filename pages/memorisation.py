"""Does a model keep a secret that it was trained on? Plant one, and watch."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.errors import CoreError
from core.studies.memorisation_summary import SHIPPED
from dashboard import cache
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.memorisation import controls, explain, job, measured, pinned, state, views
from dashboard.state import is_presenting
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

address = state.address()
address.adopt()
job.adopt_memorise_job()

headline = Noted(st.container())
toolbar(partial(controls.show_link, address))
shipped = None
try:
    shipped = cache.memorisation() if SHIPPED.exists() else None
except CoreError as error:
    show_error(error, title="What was measured cannot be read")
if shipped is None:
    measured.unmeasured(headline)
else:
    measured.finding(headline, shipped)
    measured.insertions(shipped)
    measured.note(headline, shipped)

st.header("Plant a canary of your own", anchor=False)
address.warn_of_refused()
with st.container(key="stage" if is_presenting() else "bench"):
    try:
        request, texts = controls.asked()
        canary = controls.foreseen(str(state.chosen("canary")))
        found = job.experiment(request, texts, canary) if request else None
        if found is not None:
            views.growth(found)
            st.header("What sampling brings out", anchor=False)
            views.sampling(found)
    except CoreError as error:
        show_error(error, title="This canary cannot be planted")
is_own = controls.is_typed(str(state.chosen("canary")))
story_button(
    "memorisation",
    address.query(),
    headline,
    lambda with_typed: pinned.seen(shipped, with_typed),
    has_typed=is_own,
)
how_much_leaks("memorisation", *measured.commands(shipped))

if shipped is not None and shipped.audited:
    st.header("What an audit shows of a promise", anchor=False)
    measured.audit(shipped)
explain.how_it_is_computed()
explain.caveats()
