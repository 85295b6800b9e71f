"""What do the words mean? Every term of the pages, once."""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion.export import table_csv
from core.glossary import GLOSSARY
from core.tasks.names import TASK_NAMES
from dashboard import markup
from dashboard.address import Address
from dashboard.downloads import save_csv
from dashboard.toolbar import toolbar

st.title("What the words mean", anchor=False)
st.markdown(
    "The same explanations as under the pointer at the end of every page. A page says first how "
    "many of ten words are read, then the F1 behind it."
)
toolbar(Address("glossary", ()).show_link)
st.html(markup.glossary({term: text.replace("*", "") for term, text in GLOSSARY.items()}))
st.header("The tasks that usefulness is measured by", anchor=False)
st.html(markup.glossary(TASK_NAMES))
rows = [{"term": term, "meaning": text} for term, text in GLOSSARY.items()]
save_csv(lambda: table_csv(rows), "glossary", about="Every term with what it means")
