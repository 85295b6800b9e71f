"""What do the terms mean? The glossary of all terms on the pages."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.findings.words import words
from leakscope.core.glossary import GLOSSARY
from leakscope.core.spreadsheets import table_csv
from leakscope.core.tasks.names import TASK_NAMES
from leakscope.dashboard.address import Address
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.toolbar import toolbar

found = words()
show_finding(st.container(), replace(found, table=None, facts=()), "glossary")
toolbar(Address("glossary", ()).show_link)
pin_button("glossary", [], lambda _: PinnedView(finding=found))
st.html(markup.glossary({term: text.replace("*", "") for term, text in GLOSSARY.items()}))
with st.expander("Attacks, defences and tasks", icon=":material/checklist:"):
    for title, entries in (
        ("Attacks on vectors", INVERSION_ATTACKS),
        ("Attacks on attributes", ATTRIBUTE_ATTACKS),
        ("Attacks on membership", CLASSIFIER_ATTACKS),
        ("Defences", DEFENCES),
    ):
        st.subheader(title, anchor=False)
        st.html(markup.glossary({entry.title: entry.summary for entry in entries.values()}))
    st.subheader("Tasks that measure utility", anchor=False)
    st.html(markup.glossary(TASK_NAMES))
rows = [{"term": term, "meaning": text} for term, text in GLOSSARY.items()]
save_csv(lambda: table_csv(rows), "glossary", about="All terms with their meanings")
