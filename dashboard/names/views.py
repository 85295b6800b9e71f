"""The parts of the page of names: the finding, the heat map, and the words of a cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.export import neutral_cell, table_csv
from core.attacks.inversion.reading import mark_recovery
from core.figures.names import name_map
from core.names.experiment import NameExperiment
from core.said import rate_said
from dashboard import cache, markup
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.inversion.answers import ENCODER
from dashboard.names import state
from dashboard.names.state import NamesRequest
from dashboard.state import keep_choice

__all__ = ["MAP_TITLE", "QUESTION", "cell_words", "finding", "heat_map"]

MAP_TITLE = "**Surname read, % of the sentences** · rows: whose sentences; columns: the name put in"
QUESTION = "Whose name is in the vector?"
_MOST_SHOWN = 10


def finding(slot: Any, found: NameExperiment, attack: str) -> None:
    """Draw the answer to the page's question, and what to hold it against."""
    matrix = found.substitution
    own, other = matrix.diagonal(), matrix.exchanged()
    n_known = sum(count > 0 for count in found.training_counts)
    n_own, n_other = (int(matrix.read[own_or].sum()) for own_or in (matrix.is_own, ~matrix.is_own))
    n_read = (
        f"the surname in {n_own} of {own.n} sentences ({own.value:.0f} %)"
        if own.n
        else f"{other.value:.0f} % of the surnames put in"
    )
    slot.title(f"The vector alone gives away {n_read}", anchor=False)
    by = INVERSION_ATTACKS[attack].title.lower()
    slot.markdown(
        f"Every name is put into every sentence, and the {by} reads each vector. From the "
        "sentences as they were written it read the surname of "
        f"{rate_said(own, 'sentences', count=n_own, is_bold=True)}; with another name of the list "
        f"in its place, of {rate_said(other, 'vectors', count=n_other, is_bold=True)}.\n\nIts "
        f"vocabulary holds {n_known} of the {len(matrix.names)} surnames; the others it can never "
        f"read{_of_known(found)}, and the probe below needs to know none. Surnames of the list "
        "that are not in the sentence it answered in "
        f"{rate_said(matrix.wrongly_said(), 'chances', decimals=1)}."
    )


def _of_known(found: NameExperiment) -> str:
    """Return how many surnames were read of those that could be, as a clause; empty for none."""
    is_known = np.array(found.training_counts) > 0
    own = found.substitution.is_own & is_known
    if not own.any() or is_known.all():
        return ""
    n_read = int(found.substitution.read[own].sum())
    return (
        f", and they are here by design: where it holds the surname, it read it from {n_read} of "
        f"{own.sum()} sentences"
    )


def heat_map(found: NameExperiment) -> None:
    """Draw the matrix; a click chooses a cell."""
    matrix = found.substitution
    keep_choice(state.ROW_KEY, range(len(matrix.rows)))
    keep_choice(state.COLUMN_KEY, range(len(matrix.names)))
    cells = [[matrix.cell(row, column) for column in matrix.names] for row in matrix.rows]
    st.markdown(MAP_TITLE)
    event = st.plotly_chart(
        name_map(
            [name.surname for name in matrix.rows],
            [name.surname for name in matrix.names],
            cells,
            notes=[_note(count) for count in found.training_counts],
            chosen=state.chosen_cell(),
            is_dark=st.context.theme.type == "dark",
        ),
        key="names-map",
        on_select="rerun",
        selection_mode="points",
        config=chart_config("leakscope-names"),
        alt="How often each surname was read, a row for whose sentences and a column for the name "
        "put in; the table below holds the same numbers",
    )
    points = event.selection.points if event else []
    clicked = next((p["customdata"] for p in points if p.get("customdata")), None)
    if state.adopt_cell_click(tuple(clicked) if clicked else None):
        st.rerun()
    st.caption(
        "Below the name of a column: how many of the attack's training texts hold it (– : it is "
        "not in the attack's vocabulary). Click a cell, or choose it below, to see the words."
    )
    table = found.table()
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in table],
            key="names-table",
            hide_index=True,
        )
        save_csv(lambda: table_csv(table), "names", about="One row a cell. It holds the names.")


def _note(count: int) -> str:
    return f"{count:,}" if count else "–"


def cell_words(found: NameExperiment, request: NamesRequest) -> None:
    """Draw the choice of a cell, and what was read from each of its sentences."""
    matrix = found.substitution
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Sentences of",
            range(len(matrix.rows)),
            key=state.ROW_KEY,
            format_func=lambda i: matrix.rows[i].full,
            width=260,
            help="The row of the heat map: whose sentences they are",
        )
        st.selectbox(
            "with the name",
            range(len(matrix.names)),
            key=state.COLUMN_KEY,
            format_func=lambda i: matrix.names[i].full,
            width=260,
            help="The column of the heat map: the name that was put in",
        )
    row, column = state.chosen_cell()
    positions = matrix.rows_of(matrix.rows[row])
    rate = matrix.cell(matrix.rows[row], matrix.names[column])
    name = plain(matrix.names[column].surname)
    n_read = int(matrix.read[positions, column].sum())
    st.markdown(f"**{name}** was read from {rate_said(rate, 'sentences', count=n_read)}.")
    attack = cache.opened(request.attack, ENCODER)
    guess = cache.guess(request.attack, ENCODER, False)
    readings = [
        mark_recovery(
            request.attack,
            attack,
            cache.encoder(ENCODER),
            matrix.texts[s][column],
            matrix.answers[s][column],
            guess,
        )
        for s in positions[:_MOST_SHOWN]
    ]
    for s, reading in zip(positions, readings, strict=False):
        with st.container(border=True):
            st.html(markup.marked_sentence(reading))
            st.html(markup.wrong_words(reading))
            is_read = bool(matrix.read[s, column])
            st.caption(f"{'●' if is_read else '○'} surname {'read' if is_read else 'not read'}")
    st.html(markup.legend(readings))
    if len(positions) > _MOST_SHOWN:
        st.caption(f"The first {_MOST_SHOWN} of {len(positions)} sentences are shown.")
