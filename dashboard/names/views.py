"""The views of the names page: finding, heat map, and the words of a cell."""

from __future__ import annotations

import streamlit as st

from leakscope.core.attacks.inversion.reading import mark_recovery
from leakscope.core.figures.names import name_map
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.names import describe_substitution, names_in_sentences
from leakscope.core.findings.prose import plain
from leakscope.core.formatting import format_rate
from leakscope.core.names.experiment import NOT_TESTABLE, NameExperiment
from leakscope.core.spreadsheets import neutral_cell, table_csv
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.names import measured, state
from leakscope.dashboard.names.state import NamesRequest
from leakscope.dashboard.story.pinning import PinnedView
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.state import keep_choice

QUESTION = "Whose name is in the vector?"
_MOST_SHOWN = 10


def finding(found: NameExperiment, attack: str) -> Finding:
    """Return the finding on how often each attacker recovers the names."""
    record = cache.shipped_records(ENCODER).get(attack)
    return names_in_sentences(found, attack, record, measured.news_rows())


def pinned(found: NameExperiment, attack: str, with_names: bool) -> PinnedView:
    """Return the finding as it is pinned; names are numbered unless they may be included."""
    matrix = found.substitution
    people = {name: i for i, name in enumerate(dict.fromkeys((*matrix.names, *matrix.rows)), 1)}
    numbered = {
        part: f"name {i}" for name, i in people.items() for part in (name.full, name.surname)
    }
    return PinnedView(finding=finding(found, attack), instead={} if with_names else numbered)


def heat_map(found: NameExperiment, attack: str) -> None:
    """Draw the heat map of surnames, whose cells can be selected, and its table."""
    matrix = found.substitution
    keep_choice(state.ROW_KEY, range(len(matrix.rows)))
    keep_choice(state.COLUMN_KEY, range(len(matrix.names)))
    cells = [[matrix.cell(row, column) for column in matrix.names] for row in matrix.rows]
    st.markdown(
        "**Surname recovered, % of the sentences.** Rows: the name in the sentences. Columns: the "
        "name that replaced it. Cells: how often the new name was recovered."
    )
    event = st.plotly_chart(
        name_map(
            [name.surname for name in matrix.rows],
            [name.surname for name in matrix.names],
            cells,
            notes=[_training_note(count) for count in found.training_counts],
            testable=found.is_testable.tolist(),
            chosen=state.chosen_cell(),
            is_dark=st.context.theme.type == "dark",
        ),
        key="names-map",
        on_select="rerun",
        selection_mode="points",
        config=chart_config("leakscope-names"),
        alt="How often each surname was recovered, by original name (rows) and inserted name "
        "(columns); the table below has the same numbers",
    )
    points = event.selection.points if event else []
    clicked = next((p["customdata"] for p in points if p.get("customdata")), None)
    if state.adopt_cell_click(tuple(clicked) if clicked else None):
        st.rerun()
    st.caption(
        "Below a column's name: how many training texts of the attack contain it. The attack "
        "cannot name the hatched ones. Click a cell to see its words."
    )
    table = found.table()
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.markdown(describe_substitution(found, attack))
        st.dataframe(
            [{k: neutral_cell(v) for k, v in row.items()} for row in table],
            key="names-table",
            hide_index=True,
        )
        save_csv(
            lambda: table_csv(table), "names", about="One row per cell. It contains the names."
        )


def _training_note(count: int) -> str:
    """Return a column's number of training texts; "not testable" if there are none."""
    return f"{count:,}" if count else "not testable"


def cell_words(found: NameExperiment, request: NamesRequest) -> None:
    """Draw the choice of a cell, and what the attack recovered from its sentences."""
    matrix = found.substitution
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Original name",
            range(len(matrix.rows)),
            key=state.ROW_KEY,
            format_func=lambda i: matrix.rows[i].full,
            width=260,
            help="The row of the heat map",
        )
        st.selectbox(
            "Inserted name",
            range(len(matrix.names)),
            key=state.COLUMN_KEY,
            format_func=lambda i: matrix.names[i].full,
            width=260,
            help="The column of the heat map",
        )
    row, column = state.chosen_cell()
    positions = matrix.rows_of_name(matrix.rows[row])
    rate = matrix.cell(matrix.rows[row], matrix.names[column])
    name = plain(matrix.names[column].surname)
    n_read = int(matrix.read[positions, column].sum())
    can = bool(found.is_testable[column])
    st.markdown(
        f"**{name}** was recovered from {format_rate(rate, 'sentences', count=n_read)}."
        if can
        else f"**{name}** is {NOT_TESTABLE}, because it cannot give this name. The attackers "
        "with a list of names do test it."
    )
    attack = cache.open_attack_once(request.attack, ENCODER)
    guess = cache.prior_answer(request.attack, ENCODER, False)
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
            if reading.wrong:
                st.html(markup.wrong_words(reading))
            is_read = bool(matrix.read[s, column])
            verdict = "● surname recovered" if is_read else "○ surname not recovered"
            st.caption(verdict if can else f"▨ surname {NOT_TESTABLE}")
    st.html(markup.legend(readings))
    if len(positions) > _MOST_SHOWN:
        st.caption(f"Showing the first {_MOST_SHOWN} of {len(positions)} sentences.")
