"""What was measured on many sentences, beside the one that is typed."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from core.errors import CoreError
from core.story.views import told
from dashboard import markup
from dashboard.calm import show_error
from dashboard.charts import chart_config
from dashboard.state import is_presenting

__all__ = ["OPEN_KEY", "VIEWS", "many_sentences"]

OPEN_KEY = "many-sentences"

VIEWS = ("news", "sentences", "unnamed")
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
        for view in VIEWS:
            try:
                slide = told(view, {})
            except CoreError as error:
                show_error(error, title="What was measured cannot be read")
                continue
            st.subheader(slide.title, anchor=False)
            st.markdown(slide.body)
            if view == "sentences":
                st.plotly_chart(
                    go.Figure(dict(slide.figure or {})),
                    key="many-sentences-figure",
                    config=chart_config("leakscope-sentences"),
                    alt=slide.alt,
                )
            if slide.table is not None:
                rows = [
                    dict(zip(slide.table.columns, row, strict=True)) for row in slide.table.rows
                ]
                st.dataframe(rows, key=f"many-{view}", hide_index=True)
            st.html(markup.facts(dict(slide.facts)))
            st.caption(slide.caveat)
