"""The selected texts of a map: what an attack recovers, as a table and as downloads."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import strength
from leakscope.core.errors import CoreError
from leakscope.core.formatting import describe_leak, format_out_of_ten
from leakscope.core.intervals import percent_interval
from leakscope.core.projection.displacement import protected_vectors
from leakscope.core.projection.job import MapRequest
from leakscope.core.projection.points import sample_rows
from leakscope.core.projection.selection import selection_json, selection_rows
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.results import Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.spreadsheets import neutral_cell, table_csv
from leakscope.core.units import units_of
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.inversion.views import describe_groups
from leakscope.dashboard.projection import state
from leakscope.dashboard.projection.job import DrawnMap
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.downloads import save_csv, save_json

ATTACK = "probe_mlc"
_MOST_ATTACKED = 50


@dataclass(frozen=True)
class Readings:
    """Readings by point, from the original vectors and from the protected ones."""

    original: dict[int, Reading] = field(default_factory=dict)
    protected: dict[int, Reading] = field(default_factory=dict)
    defence: DefenceSpec | None = None


def readings_of(
    request: MapRequest,
    drawn: DrawnMap,
    rows: list[int],
    encoder: Encoder,
    defence: DefenceSpec | None,
) -> Readings:
    """Attack at most 50 selected points, with and without the defence; return the Readings."""
    if request.on != answers.ENCODER or not rows:
        return Readings()
    # A random sample, since selected points come in the order of their documents.
    targets = np.array([rows[i] for i in sample_rows(len(rows), _MOST_ATTACKED)], np.int64)
    texts, key = drawn.points.texts, (request, tuple(targets.tolist()))
    with st.spinner("Attacking the selected vectors"):
        original = state.cached_result(
            "original", key, lambda: _attack_rows(texts, targets, drawn.vectors[targets])
        )
    if defence is None:
        return Readings(original)

    def attack_protected() -> dict[int, Reading]:
        """Protect the vectors of the attacked points and attack them; return readings by point."""
        vectors = protected_vectors(encoder, texts, drawn.vectors, targets, defence)
        return _attack_rows(texts, targets, vectors)

    try:
        with st.spinner("Attacking the protected vectors"):
            found = state.cached_result("protected", (key, defence), attack_protected)
    except CoreError:  # the page has already shown it
        return Readings(original)
    return Readings(original, found, defence)


def _attack_rows(texts: tuple[str, ...], rows: np.ndarray, vectors: Vectors) -> dict[int, Reading]:
    """Attack one vector per row; return the readings by row (index of the point)."""
    return {
        int(i): answers.uncached_reading(ATTACK, texts[i], vectors[[j]]) for j, i in enumerate(rows)
    }


def defence_label(defence: DefenceSpec) -> str:
    """Return a defence's title and strength, such as `Text to text at η 75`."""
    settings = {name: value for name, value in defence.settings if name != "seed"}
    title = DEFENCES[defence.name].title
    return f"{title} at {strength(defence.name, settings)}" if settings else title


def describe_readings(n_selected: int, found: Readings) -> str:
    """Describe what was recovered from the selected texts on average; "" if none can be scored."""
    scored = {i: r for i, r in found.original.items() if r.targets}
    if not scored:
        return ""
    part = ""
    if n_selected > len(found.original):
        part = f" of {len(found.original)} texts, chosen at random,"
    guessed_recall = float(np.mean([r.prior.recall for r in scored.values()]))
    against = (
        f"An attacker who never sees the vectors gets {format_out_of_ten(guessed_recall)} right."
    )
    own = _describe_mean(list(scored.values()))
    recovers = f"From the vectors{part} the probe-started classifier recovers"
    if found.defence is None:
        groups = describe_groups(list(found.original.values()))
        return f"{recovers} {own}, n = {len(scored)}. {against} {groups}"
    protected = _describe_mean([found.protected[i] for i in scored])
    return (
        f"{recovers} {own} without the defence, and {protected} with it "
        f"({defence_label(found.defence)}), n = {len(scored)} in both cases. {against} "
        "The attack was not trained on protected vectors: one that was may recover more."
    )


def _describe_mean(found: list[Reading]) -> str:
    """Describe the readings' mean recall as words out of ten, and their mean F1 with interval."""
    f1 = np.array([reading.scores.f1 for reading in found])
    recall = float(np.mean([reading.scores.recall for reading in found]))
    interval = percent_interval(f1, groups=units_of([reading.text for reading in found]))
    return describe_leak(Score(float(f1.mean()), interval, len(f1)), recall, is_bold=True)


_MOST_SHOWN = 1000
_MOST_WORDS = 14
_TABLE_HEIGHT = 230


def selected_texts(
    request: MapRequest,
    drawn: DrawnMap,
    rows: list[int],
    encoder: Encoder,
    defence: DefenceSpec | None,
) -> None:
    """Attack and draw the selected texts with what leaks from their vectors, and downloads."""
    st.header("What leaks from the selected texts", anchor=False)
    if not rows:
        is_flat = drawn.layout.spec.n_components == 2
        st.markdown(
            "Draw a loop around points of the map, or click one. The words that an attacker "
            "recovers from their vectors appear here."
            if is_flat
            else "You can select points only in two dimensions: choose 2-D under Method."
        )
        return
    found = readings_of(request, drawn, rows, encoder, defence)
    rows = sorted(rows, key=lambda i: i not in found.original)  # attacked texts first
    _draw_summary(request, rows, found)
    _draw_table(drawn, rows, found)
    _downloads(request, drawn, rows, found)


def _draw_summary(request: MapRequest, rows: list[int], found: Readings) -> None:
    """Draw how much was recovered from the selected texts on average, and the clear button."""
    n = f"**{len(rows):,} text{'s' if len(rows) > 1 else ''} selected.**"
    if words := Counter(word.word for one in found.original.values() for word in one.hits):
        st.html(markup.counted_words("Words recovered most often", words.most_common(_MOST_WORDS)))
    if request.on != answers.ENCODER:
        st.markdown(
            f"{n} They are not attacked: Leakscope includes no attack trained for this encoder. "
            "`leakscope train` trains one."
        )
    else:
        summary = describe_readings(len(rows), found)
        st.markdown(
            f"{n} {summary or 'They contain no word in the vocabulary of the attack: not tested.'}"
        )
    st.button(
        "Clear the selection",
        key="clear-selection",
        icon=":material/deselect:",
        help="Deselects all texts and shows all points in full again",
        on_click=state.clear_selection,
    )


def _draw_table(drawn: DrawnMap, rows: list[int], found: Readings) -> None:
    """Draw a table of the selected texts with the recovered words."""
    shown = rows[:_MOST_SHOWN]
    table = [_table_row(drawn, i, found.original.get(i), found.protected.get(i)) for i in shown]
    columns = st.column_config
    st.dataframe(
        table,
        key="selected",
        hide_index=True,
        height=min(35 * (len(shown) + 1) + 3, _TABLE_HEIGHT),
        column_config={
            "text": columns.TextColumn("Text", width="large"),
            "recovered": columns.TextColumn("Words recovered", width="medium"),
            "f1": columns.NumberColumn("F1", format="%.0f"),
            "protected": columns.TextColumn(
                "Recovered with the defence",
                width="medium",
                help=defence_label(found.defence) if found.defence else None,
            ),
            "protected f1": columns.NumberColumn("F1 with the defence", format="%.0f"),
            "guess": columns.NumberColumn("F1 by guessing", format="%.0f"),
        },
    )
    if len(rows) > len(shown):
        st.caption(
            f"The table lists the first {len(shown):,}; the files contain all {len(rows):,}."
        )


def _table_row(
    drawn: DrawnMap, i: int, reading: Reading | None, protected: Reading | None = None
) -> dict[str, object]:
    """Return point i's text with its readings (original, protected) as a table row (dict)."""
    row: dict[str, object] = {"text": drawn.points.texts[i][:500]}
    if reading is not None:
        row |= {"recovered": _join_recovered_words(reading), "f1": reading.scores.f1}
    if protected is not None:
        row |= {"protected": _join_recovered_words(protected), "protected f1": protected.scores.f1}
    if reading is not None:
        row["guess"] = reading.prior.f1
    row |= {f"{name} ": values[i] for name, values in drawn.points.columns.items()}
    # The download button that Streamlit adds to the table writes cells unescaped.
    return {str(neutral_cell(name)): neutral_cell(value) for name, value in row.items()}


def _join_recovered_words(reading: Reading) -> str:
    """Return the recovered words of a reading in one text, joined by commas."""
    return ", ".join(w.word for w in reading.hits) or "none"


def save_map(drawn: DrawnMap) -> None:
    """Draw the button that downloads every point of the map as CSV."""
    points, coordinates = drawn.points, drawn.layout.coordinates
    save_csv(
        lambda: table_csv(selection_rows(points, coordinates, range(len(points)), {})),
        "map",
        about="Every point of the map, one row per text. It contains the texts.",
    )


def _downloads(request: MapRequest, drawn: DrawnMap, rows: list[int], found: Readings) -> None:
    """Draw the buttons that download the selection as JSON and CSV."""
    layout = drawn.layout
    table = selection_rows(drawn.points, layout.coordinates, rows, found.original, found.protected)
    facts = {
        "source": drawn.points.name,
        "shown": drawn.points.description,
        "encoder": request.on.name,
        "method": layout.spec.method,
        "seed": layout.spec.seed,
        "trustworthiness": layout.trustworthiness.score.value,
        "attacked": len(found.original),
        "defence": defence_label(found.defence) if found.defence else None,
    }
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Save the selection")
        save_json(
            lambda: selection_json(facts, table),
            "selection",
            about="The selection for programs. It contains the texts.",
            is_here=True,
        )
        save_csv(
            lambda: table_csv(table),
            "selection",
            about="One row per text, for spreadsheets. It contains the texts.",
            is_here=True,
        )
