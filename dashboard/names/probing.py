"""The second panel of the page of names: the candidates, by how near they come to a vector."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.names.experiment import NameExperiment
from core.names.probing import KNOWLEDGE
from core.spreadsheets import neutral_cell
from core.studies.names_tables import said
from dashboard import cache
from dashboard.names import state
from dashboard.state import keep_choice

__all__ = ["probing"]

_FEW, _FEW_WORD = 5, "five"
"""How many of the best candidates are looked at besides the first."""


def probing(found: NameExperiment) -> None:
    """Draw what each attacker finds, and the candidates of one vector by their cosine."""
    n = len(found.substitution.names)
    more = f" and {100 * _FEW / n:.0f} % among {_FEW_WORD}" if n > _FEW else ""
    st.markdown(
        f"This attacker knows that one of these **{n} names** is in the sentence and may encode "
        "texts, but was trained for none of them. The candidate whose text comes nearest to the "
        f"vector wins. Guessing finds {100 / n:.0f} % at once{more}, by construction. Asked of "
        f"{len(found.probed)} vectors of the heat map. Besides the names, the attacker knows:\n\n"
        + "\n".join(f"- **{k.title}**: {k.assumes}." for k in KNOWLEDGE.values())
    )
    rates = {one.knows: one.rate for one in found.attackers()}  # those of the headline
    rows = [
        {"also known": KNOWLEDGE[knows].title, "found, %": rates[knows].said(0)}
        | ({f"among {_FEW_WORD}, %": said(probe.hits(_FEW))} if n > _FEW else {})
        for knows, probe in found.probes.items()
    ]
    st.dataframe(rows, key="probing", hide_index=True)
    st.caption(
        f"In brackets the 95 % interval, over the sentences that the {len(found.probed)} vectors "
        f"are of. {_hardness(found)}"
    )
    _one_vector(found)


def _hardness(found: NameExperiment) -> str:
    """Return how hard it is to tell these candidates apart."""
    names = [name.full for name in found.substitution.names]
    what = (
        f"An easy example: {len(names)} invented names that are unlike each other."
        if names == list(cache.name_samples()["names"])
        else f"{len(names)} candidates are few, and names that are unlike are easy to tell apart."
    )
    return f"{what} Below, more candidates were measured."


def _one_vector(found: NameExperiment) -> None:
    """Draw the candidates of one vector, the nearest first."""
    matrix = found.substitution
    keep_choice(state.PROBED_KEY, range(len(found.probed)))
    chosen = st.selectbox(
        "One vector in detail",
        range(len(found.probed)),
        key=state.PROBED_KEY,
        format_func=lambda i: matrix.texts[found.probed[i][0]][found.probed[i][1]],
        help="A sentence of the heat map with the name that was put in; the attacker sees its "
        "vector alone",
    )
    truth = found.probed[chosen][1]
    order = np.argsort(-found.probes["sentence"].scores[chosen], kind="stable")
    rows = [
        {"candidate": neutral_cell(f"{'● ' if i == truth else ''}{matrix.names[i].full}")}
        | {
            KNOWLEDGE[knows].title: float(probe.scores[chosen, i])
            for knows, probe in found.probes.items()
        }
        for i in order
    ]
    st.dataframe(
        rows,
        key="candidates",
        hide_index=True,
        column_config={
            knowledge.title: st.column_config.NumberColumn(format="%.3f", help=knowledge.assumes)
            for knowledge in KNOWLEDGE.values()
        },
    )
    st.caption(
        "● is in the sentence. The cosine of each candidate's text with the vector, by what "
        "else the attacker knows; the greatest of a column wins."
    )
