"""The formulas, caveats and results on many sentences below a typed one."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.errors import CoreError
from leakscope.core.findings.registry import build_view
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.state import is_presenting


def how_it_is_computed(chosen: Sequence[str]) -> None:
    """Draw the formulas of the scores and of the selected attacks."""
    with st.expander("How this is computed", icon=":material/function:"):
        st.markdown(
            "$W(x)$ is the set of different words of the sentence $x$ in the attack's vocabulary; "
            r"$\hat W$ is the set of its answers. Both leave out stop words unless they count. "
            "Word order and repetitions do not matter."
        )
        st.latex(
            r"P = \frac{|W(x) \cap \hat W|}{|\hat W|} \qquad R = \frac{|W(x) \cap \hat W|}{|W(x)|}"
            r"\qquad F_1 = \frac{2PR}{P+R}"
        )
        st.caption("Corò (2022), Eq. 4.6, times 100. An empty answer has precision 0.")
        st.markdown(
            "**Guessing** answers the same most frequent words for every sentence: as many as "
            "maximise the expected F1. Whatever an attack scores above it leaked from the vector."
        )
        for name in chosen:
            entry = INVERSION_ATTACKS[name]
            reference = entry.reference[:1].upper() + entry.reference[1:]
            st.markdown(f"**{entry.title}** ({reference}). {entry.summary}")
            if entry.formula:
                st.latex(entry.formula)
            st.caption(f"Score of a word: {entry.score}. The attack {entry.cost}.")


def caveats() -> None:
    """Draw the limitations of the inversion page's numbers."""
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- One sentence is an example, not a measurement. The overview and the command line "
            "give averages with intervals.\n"
            "- Most of these attacks recover words without their order. Reconstruction writes a "
            "whole sentence, which may only resemble yours.\n"
            "- Other attackers may recover more: a low score does not prove safety.\n"
            "- Words outside an attack's vocabulary are not scored. An attack with a list of "
            "frequent words may miss a rare name that an attack with a list of names recovers.\n"
            "- The encoder is all-MiniLM-L6-v2. Other encoders leak more or less."
        )


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
