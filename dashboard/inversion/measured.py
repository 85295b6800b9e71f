"""What was measured on many sentences, beside the one that is typed."""

from __future__ import annotations

import streamlit as st

from core.errors import CoreError
from core.story.views import told
from dashboard import markup
from dashboard.calm import show_error
from dashboard.state import is_presenting

__all__ = ["OPEN_KEY", "many_sentences"]

OPEN_KEY = "many-sentences"

_VIEWS = ("news", "unnamed")
"""The views of a story that open live on this page without a sentence."""


def many_sentences() -> None:
    """Draw what the attacks read of many sentences, as slides tell it; read once it is opened."""
    if is_presenting():
        return
    shown = st.expander(
        "On many sentences", icon=":material/stacks:", key=OPEN_KEY, on_change="rerun"
    )
    if not shown.open:
        return
    with shown:
        for view in _VIEWS:
            try:
                slide = told(view, {})
            except CoreError as error:
                show_error(error, title="What was measured cannot be read")
                continue
            st.subheader(slide.title, anchor=False)
            st.markdown(slide.body)
            if slide.table is not None:
                rows = [
                    dict(zip(slide.table.columns, row, strict=True)) for row in slide.table.rows
                ]
                st.dataframe(rows, key=f"many-{view}", hide_index=True)
            st.html(markup.facts(dict(slide.facts)))
            st.caption(slide.caveat)
