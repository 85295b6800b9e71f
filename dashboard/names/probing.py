"""The probing panel of the names page: candidates ranked by the cosine of their texts."""

from __future__ import annotations

import numpy as np
import streamlit as st

from leakscope.core.names.experiment import NameExperiment
from leakscope.core.names.probing import KNOWLEDGE
from leakscope.core.spreadsheets import neutral_cell
from leakscope.core.studies.names.tables import format_score
from leakscope.dashboard import cache
from leakscope.dashboard.names import state
from leakscope.dashboard.ui.state import keep_choice

_FEW, _FEW_WORD = 5, "five"
"""The k of the top-k rate that is shown beside top-1."""


def probing_panel(found: NameExperiment) -> None:
    """Draw how often each attacker finds the name, and the ranking for one vector."""
    n = len(found.substitution.names)
    more = f", and {100 * _FEW / n:.0f} % in the top {_FEW_WORD}" if n > _FEW else ""
    n_all, n_tested = found.substitution.read.size, len(found.probed)
    tested = f"The tab “Each surname” has {n_all} vectors; all were tested here."
    if n_tested < n_all:
        tested = (
            f"The tab “Each surname” has {n_all} vectors; {n_tested} of them, chosen at random to "
            "save time, were tested here."
        )
    st.markdown(
        f"Each attacker has a list of **{n} names** and knows that one of them is in the sentence. "
        "The attacker can use the encoder but was not trained on these names. For each name it "
        "encodes a text, and picks the name whose vector is nearest. Guessing finds "
        f"{100 / n:.0f} %{more}, because 1 of {n} names is right. {tested} Besides the names, the "
        "attackers know:\n\n"
        + "\n".join(f"- **{k.title}.** {k.assumes}" for k in KNOWLEDGE.values())
    )
    rates = {one.knows: one.rate for one in found.attackers()}  # as in the headline
    rows = [
        {"also known": KNOWLEDGE[knows].title, "found, %": rates[knows].format(0)}
        | ({f"in the top {_FEW_WORD}, %": format_score(probe.hits(_FEW))} if n > _FEW else {})
        for knows, probe in found.probes.items()
    ]
    st.dataframe(rows, key="probing", hide_index=True)
    st.caption(
        "The brackets show the 95 % CI. It counts sentences, because several vectors come from the "
        f"same sentence. {_describe_difficulty(found)}"
    )
    _candidate_ranking(found)


def _describe_difficulty(found: NameExperiment) -> str:
    """Describe how difficult it is to distinguish the candidates."""
    names = [name.full for name in found.substitution.names]
    what = (
        f"This example is easy, because its {len(names)} invented names differ clearly."
        if names == list(cache.name_samples()["names"])
        else f"{len(names)} candidates are few, and dissimilar names are easy to distinguish."
    )
    return f"{what} More candidates were measured on news."


def _candidate_ranking(found: NameExperiment) -> None:
    """Draw the choice of a vector, and its candidates ranked by cosine."""
    matrix = found.substitution
    keep_choice(state.PROBED_KEY, range(len(found.probed)))
    chosen = st.selectbox(
        "One vector in detail",
        range(len(found.probed)),
        key=state.PROBED_KEY,
        format_func=lambda i: matrix.texts[found.probed[i][0]][found.probed[i][1]],
        help="A sentence of the heat map with its inserted name. The attacker sees only the vector",
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
        "● marks the name in the sentence. Each column is one attacker, by what else the attacker "
        "knows. It shows how similar each candidate's text is to the vector (cosine; 1 means "
        "identical). The attacker picks the most similar."
    )
