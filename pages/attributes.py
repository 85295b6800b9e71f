"""Who wrote it? What vectors say about their texts' authors, and which part of them says it."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from core.studies.attribute_curves import FILES
from dashboard import cache
from dashboard.attributes import controls, explain, job, pinned, state, views
from dashboard.calm import show_error
from dashboard.leakage import how_much_leaks
from dashboard.origin import show_origin
from dashboard.story.pinning import Noted, story_button
from dashboard.toolbar import toolbar

address = state.address(cache.attribute_corpora())
address.adopt()
job.adopt_attribute_job()

headline = Noted(st.container())
toolbar(address.show_link)
try:
    measured = cache.attribute_rows()
except CoreError as error:
    show_error(error, title="What was measured cannot be read")
    measured = []
view = None
if measured:
    view, along = controls.view_pickers(measured, "measured")
    views.finding(headline, measured, view, is_title=True)
    views.accuracy(measured, view, along, "measured")
    show_origin([row.provenance for row in measured if row["labelled_from"] == view.source])
    views.note(headline, measured, view, along)
    views.mistakes_at(measured, view, "measured")
else:
    headline.title(views.QUESTION, anchor=False)
    headline.info(
        f"Nothing was measured on many authors yet: `{views.STUDY} --out "
        f"assets/attributes/{FILES[0]}` does it. Below, you can try it on a few.",
        icon=":material/science:",
    )
story_button("attributes", address.query(), headline, lambda _: pinned.seen(measured, view))
how_much_leaks("attributes", views.STUDY)

st.header("Try it on other texts", anchor=False)
asked = controls.text_pickers(cache.attribute_corpora())
address.warn_of_refused()
found = None
try:
    found = job.inferred(*asked) if asked else None
except CoreError as error:
    show_error(error, title="These texts cannot be used")
if found is not None and asked is not None:
    chosen, drawn_along = controls.view_pickers(found.rows, "own")
    views.finding(st.container(), found.rows, chosen, is_title=False)
    views.accuracy(found.rows, chosen, drawn_along, "own")
    st.header("Whose text is this?", anchor=False)
    views.typed(found, asked[0].attribute)
    st.header("Who is taken for whom?", anchor=False)
    views.mistakes_at(found.rows, chosen, "own")

explain.how_it_is_computed()
explain.caveats()
