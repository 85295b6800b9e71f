"""Who wrote it? What vectors reveal about the authors of texts, by topic and by style."""

from __future__ import annotations

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.attributes import TABLES, attribute_at, authors_at
from leakscope.dashboard import cache
from leakscope.dashboard.attributes import controls, state, views
from leakscope.dashboard.story.pinning import pin_button
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.leakage import command_button
from leakscope.dashboard.ui.toolbar import toolbar

address = state.address(cache.attribute_corpora())
address.adopt()
state.adopt_attribute_job()

headline = st.container()
toolbar(address.show_link)
try:
    measured = cache.attribute_rows()
except CoreError as error:
    show_error(error, title="The measured results cannot be read")
    measured = []
if measured:
    view, along = controls.view_pickers(measured, "measured")
    finding = authors_at(measured, view, along)
    views.show_measured(headline, finding, measured, view, "attributes")
    pin = views.pinned(finding, measured, view)
    views.size_table(measured, view, along, "measured")
    views.show_mistakes(measured, view, "measured")
else:
    pin = views.unmeasured(headline)
pin_button("attributes", address.query(), lambda _: pin)
command_button("attributes", *TABLES)

st.header("Try it on other texts", anchor=False)
asked = controls.text_pickers(cache.attribute_corpora())
address.warn_of_refused()
found = None
try:
    found = state.inference_result(*asked) if asked else None
except CoreError as error:
    show_error(error, title="These texts cannot be used")
if found is not None and asked is not None:
    chosen, drawn_along = controls.view_pickers(found.rows, "own")
    own = attribute_at(found.rows, chosen, drawn_along, data=controls.data_title(asked[0]))
    views.show_measured(st.container(), own, found.rows, chosen, "attributes-own", is_title=False)
    views.size_table(found.rows, chosen, drawn_along, "own")
    st.header("Whose text is this?", anchor=False)
    views.typed_text_card(found, asked[0].attribute)
    st.header("Which labels are confused?", anchor=False)
    views.show_mistakes(found.rows, chosen, "own")

views.how_it_is_computed()
views.caveats()
