"""The shipped results of the study of names in news sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.names import names_in_news
from leakscope.core.names.probing import KNOWLEDGE
from leakscope.core.results.rows import Row
from leakscope.core.studies.names.tables import SHIPPED, format_score
from leakscope.dashboard import cache
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding

_DOMAINS = {"in": "news", "cross": "encyclopaedia"}


def study_results() -> None:
    """Draw the finding and the tables of the study of names."""
    if not SHIPPED.exists():
        st.info("Not measured on this computer yet. Run `leakscope study names`.")
        return
    try:
        rows = cache.name_rows()
        finding = names_in_news(rows, is_dark=st.context.theme.type == "dark")
    except CoreError as error:
        show_error(error, title="The measured results cannot be read")
        return
    show_finding(st.container(), finding, "names-in-news", is_title=False)
    st.markdown(
        "The texts are real news about the people named most often; their names are not shown. "
        "The attacks were trained on other documents of the same news, or on an encyclopaedia. "
        "“Names added” means that the attacker looks for these people and has put their names "
        "into its training sentences."
    )
    matrices = [row for row in rows if row["kind"] == "substitution"]
    st.dataframe([_substitution_row(row) for row in matrices], key="measured", hide_index=True)
    st.caption(
        "The brackets show the 95 % CI; n counts sentences. The column “false positives” shows how "
        "often the attack named a listed surname that is not in the sentence. “Guessing” is an "
        "attacker who never sees the vector."
    )
    st.markdown("**Names that no attack was trained on**, with a list of candidates:")
    probes = [row for row in rows if row["kind"] == "probing" and row["domain"] == "in"]
    st.dataframe(
        [_probing_row(row) for row in probes if row["knows"] == "recovered" or not row["n_added"]],
        key="measured-probes",
        hide_index=True,
    )
    st.caption(
        "Guessing picks a candidate at random. Its rate is computed, not measured, so it has no "
        "interval."
    )


def news_rows() -> Sequence[Row]:
    """Return the shipped rows of the study; none if they are missing or cannot be read."""
    try:
        return cache.name_rows() if SHIPPED.exists() else ()
    except CoreError:  # shown where the table would be
        return ()


def _substitution_row(row: Row) -> dict[str, Any]:
    """Return a substitution result as a table row."""
    return {
        "names": row["n_names"],
        "trained on": _DOMAINS[row["domain"]],
        "names added": bool(row["n_added"]),
        "original name, %": format_score(row.scores["diagonal"]),
        "inserted name, %": format_score(row.scores["exchanged"]),
        "false positives, %": format_score(row.scores["wrongly_said"], decimals=1),
        "guessing, %": format_score(row.scores["prior"], decimals=1),
    }


def _probing_row(row: Row) -> dict[str, Any]:
    """Return a probing result as a table row."""
    return {
        "also known": KNOWLEDGE[row["knows"]].title + (", names added" if row["n_added"] else ""),
        "candidates": row["n_candidates"],
        "found, %": format_score(row.scores["hits_1"]),
        "in the top five, %": format_score(row.scores["hits_5"]),
        "guessing, %": f"{100 / row['n_candidates']:.1f}",
    }
