"""The selected texts of a map, and what an attack recovers from each of their vectors."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.export import neutral_cell, table_csv
from core.metrics import bootstrap_interval
from core.projection.moves import chosen_rows
from core.projection.selection import selection_json, selection_rows
from core.reading import Reading
from dashboard import answers, map_state
from dashboard.map_jobs import DrawnMap
from dashboard.map_state import MapRequest

__all__ = ["selected_texts"]

ATTACK = "probe_mlc"
_MOST_ATTACKED = 50
_MOST_SHOWN = 1000


def selected_texts(request: MapRequest, drawn: DrawnMap, rows: list[int]) -> None:
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
    readings = _readings(request, drawn, rows)
    rows = sorted(rows, key=lambda i: i not in readings)  # what was attacked comes first
    _told(request, rows, readings)
    _table(drawn, rows, readings)
    _downloads(request, drawn, rows, readings)


def _readings(request: MapRequest, drawn: DrawnMap, rows: list[int]) -> dict[int, Reading]:
    if request.on != answers.ENCODER:
        return {}
    # A sample: the points of a loop come in the order of their documents.
    targets = [rows[i] for i in chosen_rows(len(rows), _MOST_ATTACKED)]

    def attack() -> dict[int, Reading]:
        with st.spinner("Attacking the selected vectors"):
            return {
                i: answers.unprepared_reading(ATTACK, drawn.points.texts[i], drawn.vectors[[i]])
                for i in targets
            }

    found: dict[int, Reading] = map_state.remember_selection((request, tuple(targets)), attack)
    return found


def _told(request: MapRequest, rows: list[int], readings: dict[int, Reading]) -> None:
    n = f"{len(rows):,} text{'s' if len(rows) > 1 else ''} selected."
    if request.on != answers.ENCODER:
        st.markdown(
            f"{n} No attack that comes with Leakscope was trained for this encoder, so none is "
            "tried. `python -m core train` trains one."
        )
        return
    scored = [r for r in readings.values() if r.targets]
    if not scored:
        st.markdown(f"{n} None of them holds a word that the attack could find.")
        return
    own = np.array([r.scores.f1 for r in scored])
    guessed = float(np.mean([r.prior.f1 for r in scored]))
    interval = bootstrap_interval(own)
    part = "" if len(rows) <= len(readings) else f" of {len(readings)} of them, drawn at random,"
    spread = f"95 % interval {interval.low:.0f} to {interval.high:.0f}, " if len(scored) > 1 else ""
    st.markdown(
        f"{n} From the vectors{part} the probe-started classifier recovers words with a mean F1 of "
        f"**{own.mean():.0f}** ({spread}n = {len(scored)}); an attacker who never sees the vectors "
        f"reaches {guessed:.0f}."
    )


def _table(drawn: DrawnMap, rows: list[int], readings: dict[int, Reading]) -> None:
    shown = rows[:_MOST_SHOWN]
    table = [_shown(drawn, i, readings.get(i)) for i in shown]
    columns = st.column_config
    st.dataframe(
        table,
        key="selected",
        hide_index=True,
        column_config={
            "text": columns.TextColumn("Text", width="large"),
            "recovered": columns.TextColumn("Words recovered", width="medium"),
            "f1": columns.NumberColumn("F1", format="%.0f"),
            "guess": columns.NumberColumn("F1 by guessing", format="%.0f"),
        },
    )
    if len(rows) > len(shown):
        st.caption(f"The first {len(shown):,} are listed; the files below hold all {len(rows):,}.")


def _shown(drawn: DrawnMap, i: int, reading: Reading | None) -> dict[str, object]:
    row: dict[str, object] = {"text": drawn.points.texts[i][:500]}
    if reading is not None:
        row |= {"recovered": ", ".join(w.word for w in reading.hits) or "none",
                "f1": reading.scores.f1, "guess": reading.prior.f1}  # fmt: skip
    row |= {f"{name} ": values[i] for name, values in drawn.points.columns.items()}
    # The table has a download button of Streamlit's own, which writes cells as they are.
    return {str(neutral_cell(name)): neutral_cell(value) for name, value in row.items()}


def _downloads(
    request: MapRequest, drawn: DrawnMap, rows: list[int], readings: dict[int, Reading]
) -> None:
    layout = drawn.layout
    found = selection_rows(drawn.points, layout.coordinates, rows, readings)
    facts = {
        "source": drawn.points.name,
        "shown": drawn.points.told,
        "encoder": request.on.name,
        "method": layout.spec.method,
        "seed": layout.spec.seed,
        "trustworthiness": layout.trustworthiness.value,
        "attacked": len(readings),
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Save the selection")
        st.download_button(
            "JSON", lambda: selection_json(facts, found), "leakscope-selection.json",
            "application/json", key="download-json", icon=":material/data_object:",
            help="All of it, for programs. It holds the texts.", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            # With a byte-order mark, spreadsheets read accents and other scripts rightly.
            "CSV", lambda: table_csv(found).encode("utf-8-sig"), "leakscope-selection.csv",
            "text/csv", key="download-csv", icon=":material/table:",
            help="One row a text, for spreadsheets. It holds the texts.", on_click="ignore",
        )  # fmt: skip
