"""Results on many sentences, below the typed one."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.registry import build_view
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.state import is_presenting

OPEN_KEY = "many-sentences"

VIEWS = ("news", "sentences", "unnamed")
"""Story views that this page shows without a sentence."""


def many_sentences() -> None:
    """Draw the shipped findings on many sentences in an expander, loaded when opened."""
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
                slide = build_view(view, {})
            except CoreError as error:
                show_error(error, title="This result cannot be loaded")
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
            st.html(markup.description_list(dict(slide.facts)))
            st.caption(slide.caveat)
