"""What was measured on many sentences of news, beside what one typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.errors import CoreError
from core.figures.names import name_map
from core.names.probing import KNOWLEDGE
from core.studies.names_tables import SHIPPED, counted_said, matrix_of, said
from core.studies.rows import Row
from dashboard import cache
from dashboard.calm import show_error
from dashboard.charts import chart_config
from dashboard.names.views import MAP_TITLE
from dashboard.origin import show_origin

__all__ = ["dependence", "measured"]

_DOMAINS = {"in": "news", "cross": "encyclopaedia"}


def measured() -> None:
    """Draw the tables of the study, and the heat map of its few names."""
    if not SHIPPED.exists():
        st.info("Not measured on this computer yet: `python -m core study names` does it.")
        return
    try:
        rows = cache.name_rows()
    except CoreError as error:
        show_error(error, title="What was measured cannot be read")
        return
    matrices = [row for row in rows if row["kind"] == "substitution"]
    _lead(matrices, [row for row in rows if row["kind"] == "probing"])
    st.markdown(
        "On real news, with the people that it names most often (not shown here), by attacks that "
        "were trained on other documents of the same news or on an encyclopaedia. *Names added*: "
        "the attacker is after these people and puts their names into sentences of the training "
        "texts."
    )
    st.dataframe([_sums(row) for row in matrices], key="measured", hide_index=True)
    st.caption(
        "In brackets the 95 % interval; n counts sentences. *Wrongly said*: surnames of the list "
        "that are not in the sentence, of all that could have been. *Guessing*: the words that an "
        "attacker answers who never sees the vector."
    )
    show_origin([row.provenance for row in rows])
    small = next((r for r in matrices if r["n_names"] <= 12 and r["domain"] == "in"), None)
    if small is not None:
        _matrix(small)
    st.markdown("**Names that no attack was trained on**, among known candidates:")
    probes = [row for row in rows if row["kind"] == "probing" and row["domain"] == "in"]
    st.dataframe(
        [_probe(row) for row in probes if row["knows"] == "recovered" or not row["n_added"]],
        key="measured-probes",
        hide_index=True,
    )
    st.caption(
        "Guessing finds one in so many candidates. That is computed, not measured, so it has no "
        "interval."
    )


def _lead(matrices: Sequence[Row], probes: Sequence[Row]) -> None:
    """Draw the two figures that matter most in a sentence."""
    plain = [row for row in matrices if row["domain"] == "in" and not row["n_added"]]
    blind = [row for row in probes if row["knows"] == "alone"]
    if plain and blind:
        few, probe = plain[0], blind[0]
        st.markdown(
            f"An attack that was trained on other documents of the same news reads the surname "
            f"from {counted_said(few.scores['diagonal'], 'sentences')} about the {few['n_names']} "
            f"people named most often. Which of {probe['n_candidates']} names that it was never "
            "trained on is in a vector, the encoder itself tells for "
            f"{counted_said(probe.scores['hits_1'], 'vectors')}: the nearest candidate, each "
            "encoded alone."
        )


def dependence() -> str:
    """Return what the intervals of the first row of the table leave out; empty without one."""
    try:
        rows = cache.name_rows() if SHIPPED.exists() else []
    except CoreError:  # told where the table would stand
        return ""
    few = next((r for r in rows if r["kind"] == "substitution" and r["domain"] == "in"), None)
    if few is None:
        return ""
    shares = [
        100 * found[i] / n
        for i, (found, n) in enumerate(zip(few["found"], few["n_sentences"], strict=True))
    ]
    return (
        f"- On news, the {few.scores['diagonal'].n} sentences are about {few['n_names']} people, "
        "and sentences about one person are not independent of each other: the interval is of "
        f"these sentences, not of people at large. Person by person, {min(shares):.0f} % to "
        f"{max(shares):.0f} % were read.\n"
    )


def _sums(row: Row) -> dict[str, Any]:
    return {
        "names": row["n_names"],
        "trained on": _DOMAINS[row["domain"]],
        "names added": bool(row["n_added"]),
        "as written, %": said(row.scores["diagonal"]),
        "with another name, %": said(row.scores["exchanged"]),
        "wrongly said, %": said(row.scores["wrongly_said"], decimals=1),
        "guessing, %": said(row.scores["prior"], decimals=1),
    }


def _probe(row: Row) -> dict[str, Any]:
    return {
        "also known": KNOWLEDGE[row["knows"]].title + (", names added" if row["n_added"] else ""),
        "candidates": row["n_candidates"],
        "found, %": said(row.scores["hits_1"]),
        "among five, %": said(row.scores["hits_5"]),
        "guessing, %": f"{100 / row['n_candidates']:.1f}",
    }


def _matrix(row: Row) -> None:
    st.markdown(MAP_TITLE)
    st.plotly_chart(
        name_map(
            row["people"],
            row["people"],
            matrix_of(row),
            notes=[f"{n:,}" for n in row["training"]],
            is_dark=st.context.theme.type == "dark",
        ),
        key="measured-map",
        config=chart_config("leakscope-names"),
        alt=f"How often each of {row['n_names']} surnames was read in news, by whose sentences and "
        "by the name put in",
    )
    st.caption("Below each name: the training sentences that hold it.")
