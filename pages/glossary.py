"""What do the words mean? Every term of the pages, once."""

from __future__ import annotations

import streamlit as st

from core.glossary import GLOSSARY
from core.spreadsheets import table_csv
from core.story.words import INTRODUCTION, TITLE, WORDS_FACTS, words_table
from core.tasks.names import TASK_NAMES
from dashboard import markup
from dashboard.address import Address
from dashboard.downloads import save_csv
from dashboard.story.pinning import Noted, Seen, story_button
from dashboard.toolbar import toolbar

headline = Noted(st.container())
headline.title(TITLE, anchor=False)
headline.markdown(INTRODUCTION)
toolbar(Address("glossary", ()).show_link)
story_button("glossary", [], headline, lambda _: Seen(table=words_table(), facts=WORDS_FACTS))
st.html(markup.glossary({row[0]: row[1] for row in words_table().rows}))
st.header("The tasks that usefulness is measured by", anchor=False)
st.html(markup.glossary(TASK_NAMES))
rows = [{"term": term, "meaning": text} for term, text in GLOSSARY.items()]
save_csv(lambda: table_csv(rows), "glossary", about="Every term with what it means")
