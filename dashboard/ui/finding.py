"""Draw a Finding on a page: sentence, figure, table and facts."""

from __future__ import annotations

from typing import Any

import streamlit as st

from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.spreadsheets import neutral_cell, table_csv
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.terms import new_term_help


def show_finding(
    slot: Any,
    finding: Finding,
    name: str,
    *,
    is_title: bool = True,
    has_warning: bool = False,
    below: Any = None,
    n_open: int | None = None,
) -> None:
    """Draw a finding: its title, body, figure, table and facts.

    Parameters
    ----------
    slot : container
    name : str
        The names of the figure's and the table's files, and the prefix of their keys.
    is_title : bool
        Whether the finding is the page's title; False for a heading below it.
    has_warning : bool
        Whether to draw the caveat as a warning before the figure.
    below : container, optional
        Where the paragraphs after the first are drawn; above the figure by default.
    n_open : int, optional
        How many of those are shown at once; all by default.
    """
    show_answer(slot, finding, is_title=is_title, below=below, n_open=n_open)
    if has_warning and finding.caveat:
        slot.warning(finding.caveat, icon=":material/warning:")
    if finding.figure is not None:
        show_figure(slot, finding, name)
    show_numbers(slot, finding, name)


def show_answer(
    slot: Any,
    finding: Finding,
    *,
    is_title: bool = True,
    below: Any = None,
    n_open: int | None = None,
) -> Any:
    """Draw a finding's title and body; return the container of the last paragraph.

    Parameters
    ----------
    below : container, optional
        Where the paragraphs after the first are drawn.
    n_open : int, optional
        How many of those are shown at once; all by default. The rest stand in a closed expander.

    Returns
    -------
    container
        Where the last paragraph stands.
    """
    (slot.title if is_title else slot.header)(plain(finding.title), anchor=False)
    place = slot if below is None else below
    for i, paragraph in enumerate(filter(None, finding.body.split("\n\n"))):
        if n_open is not None and i == n_open + 1:
            place = limits_expander(place)
        (place if i else slot).markdown(paragraph, help=new_term_help(paragraph))
    return place


def limits_expander(slot: Any) -> Any:
    """Draw a closed expander for the limits of a result; return it for the caller to fill."""
    return slot.expander("How far this holds", icon=":material/rule:")


def show_figure(slot: Any, finding: Finding, name: str, **options: Any) -> None:
    """Draw a finding's figure; `options` go to `st.plotly_chart`."""
    slot.plotly_chart(
        finding.figure,
        key=f"{name}-figure",
        config=chart_config(f"leakscope-{name}"),
        alt=finding.alt,
        **options,
    )


def show_numbers(slot: Any, finding: Finding, name: str) -> None:
    """Draw a finding's table (with a download) and its facts in two closed expanders."""
    if finding.table is not None and finding.table.rows:
        rows = [dict(zip(finding.table.columns, row, strict=True)) for row in finding.table.rows]
        with slot.expander("The numbers as a table", icon=":material/table:"):
            st.dataframe(
                [{key: neutral_cell(value) for key, value in row.items()} for row in rows],
                key=f"{name}-table",
                hide_index=True,
            )
            save_csv(lambda: table_csv(rows), name, about="The table below the finding")
    if finding.facts:
        with slot.expander("Data and method", icon=":material/fact_check:"):
            st.markdown(
                "\n".join(f"- **{plain(fact)}**: {plain(value)}" for fact, value in finding.facts)
            )
