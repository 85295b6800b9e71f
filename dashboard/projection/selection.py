"""The selected texts of a map: what an attack recovers from each vector, as table and files."""

from __future__ import annotations

import streamlit as st

from core.attacks.inversion.reading import Reading
from core.projection.selection import selection_json, selection_rows
from core.protocols import Encoder
from core.specs import DefenceSpec
from core.spreadsheets import neutral_cell, table_csv
from dashboard.downloads import save_csv, save_json
from dashboard.inversion import answers
from dashboard.projection import picked, readings, sentences
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.readings import Readings
from dashboard.projection.state import MapRequest

__all__ = ["save_map", "selected_texts"]

_MOST_SHOWN = 1000


def selected_texts(
    request: MapRequest,
    drawn: DrawnMap,
    rows: list[int],
    encoder: Encoder,
    defence: DefenceSpec | None,
) -> None:
    """Draw the table of the selected texts, what leaks from them, and the files."""
    st.header("The selected texts, and what their vectors give away", anchor=False)
    if not rows:
        is_flat = drawn.layout.spec.n_components == 2
        st.markdown(
            "Draw a loop around points of the map, or click one."
            if is_flat
            else "Points can be selected in two dimensions: choose 2-D above."
        )
        return
    found = readings.readings_of(request, drawn, rows, encoder, defence)
    rows = sorted(rows, key=lambda i: i not in found.original)  # what was attacked comes first
    _told(request, rows, found)
    _table(drawn, rows, found)
    _downloads(request, drawn, rows, found)
    sentences.written_back(request, drawn, rows)


def _told(request: MapRequest, rows: list[int], found: Readings) -> None:
    n = f"{len(rows):,} text{'s' if len(rows) > 1 else ''} selected."
    if request.on != answers.ENCODER:
        st.markdown(
            f"{n} No attack that comes with Leakscope was trained for this encoder, so none is "
            "tried. `python -m core train` trains one."
        )
    else:
        told = readings.told(len(rows), found)
        st.markdown(f"{n} {told or 'None of them holds a word that the attack could find.'}")
    st.button(
        "Clear the selection",
        key="clear-selection",
        icon=":material/deselect:",
        help="Selects no text; the map shows all points alike again",
        on_click=picked.clear_selection,
    )


def _table(drawn: DrawnMap, rows: list[int], found: Readings) -> None:
    shown = rows[:_MOST_SHOWN]
    table = [_shown(drawn, i, found.original.get(i), found.protected.get(i)) for i in shown]
    columns = st.column_config
    st.dataframe(
        table,
        key="selected",
        hide_index=True,
        column_config={
            "text": columns.TextColumn("Text", width="large"),
            "recovered": columns.TextColumn("Words recovered", width="medium"),
            "f1": columns.NumberColumn("F1", format="%.0f"),
            "protected": columns.TextColumn(
                "Recovered with the defence",
                width="medium",
                help=readings.named(found.defence) if found.defence else None,
            ),
            "protected f1": columns.NumberColumn("F1 with the defence", format="%.0f"),
            "guess": columns.NumberColumn("F1 by guessing", format="%.0f"),
        },
    )
    if len(rows) > len(shown):
        st.caption(f"The first {len(shown):,} are listed; the files below hold all {len(rows):,}.")


def _shown(
    drawn: DrawnMap, i: int, reading: Reading | None, protected: Reading | None = None
) -> dict[str, object]:
    row: dict[str, object] = {"text": drawn.points.texts[i][:500]}
    if reading is not None:
        row |= {"recovered": _words(reading), "f1": reading.scores.f1}
    if protected is not None:
        row |= {"protected": _words(protected), "protected f1": protected.scores.f1}
    if reading is not None:
        row["guess"] = reading.prior.f1
    row |= {f"{name} ": values[i] for name, values in drawn.points.columns.items()}
    # The table has a download button of Streamlit's own, which writes cells as they are.
    return {str(neutral_cell(name)): neutral_cell(value) for name, value in row.items()}


def _words(reading: Reading) -> str:
    return ", ".join(w.word for w in reading.hits) or "none"


def save_map(drawn: DrawnMap) -> None:
    """Draw the button that saves every point of the map."""
    points, coordinates = drawn.points, drawn.layout.coordinates
    save_csv(
        lambda: table_csv(selection_rows(points, coordinates, range(len(points)), {})),
        "map",
        about="Every point of the map, a row a text. It holds the texts.",
    )


def _downloads(request: MapRequest, drawn: DrawnMap, rows: list[int], found: Readings) -> None:
    layout = drawn.layout
    table = selection_rows(drawn.points, layout.coordinates, rows, found.original, found.protected)
    facts = {
        "source": drawn.points.name,
        "shown": drawn.points.told,
        "encoder": request.on.name,
        "method": layout.spec.method,
        "seed": layout.spec.seed,
        "trustworthiness": layout.trustworthiness.score.value,
        "attacked": len(found.original),
        "defence": readings.named(found.defence) if found.defence else None,
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Save the selection")
        save_json(
            lambda: selection_json(facts, table),
            "selection",
            about="All of it, for programs. It holds the texts.",
            is_here=True,
        )
        save_csv(
            lambda: table_csv(table),
            "selection",
            about="One row a text, for spreadsheets. It holds the texts.",
            is_here=True,
        )
