"""Search a map's texts, and export selected points."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.projection.points import Points


def search_form(text: str) -> str:
    """Return a text in the form in which searches compare texts: NFKC, case-folded."""
    return normalize("NFKC", text).casefold()


def matching_rows(search_forms: Sequence[str], sought: str) -> NDArray[np.int64]:
    """Return the row numbers of the texts that contain a search string; none for an empty one.

    Parameters
    ----------
    search_forms : sequence of str
        As `search_form` returns them.
    """
    wanted = search_form(sought.strip())
    if not wanted:
        return np.empty(0, np.int64)
    return np.array([i for i, text in enumerate(search_forms) if wanted in text], np.int64)


def selection_rows(
    points: Points,
    coordinates: NDArray[np.float32],
    rows: Sequence[int],
    readings: Mapping[int, Reading],
    protected: Mapping[int, Reading] | None = None,
) -> list[dict[str, Any]]:
    """Return one export row per selected point: text, columns, coordinates, recovered words.

    Parameters
    ----------
    readings, protected : mapping of position to Reading
        Readings of the undefended and the defended vectors.
    """
    under = protected or {}
    return [_export_row(points, coordinates[i], i, readings.get(i), under.get(i)) for i in rows]


def _export_row(
    points: Points,
    place: NDArray[np.float32],
    i: int,
    reading: Reading | None,
    protected: Reading | None,
) -> dict[str, Any]:
    """Build one point's export row: its text, columns, coordinates and readings."""
    row: dict[str, Any] = {"text": points.texts[i]}
    row |= {f"column {name}": values[i] for name, values in points.columns.items()}
    row |= {f"map {axis}": float(value) for axis, value in enumerate(place, 1)}
    if reading is not None:
        row |= {"attack": reading.attack, **_export_reading(reading, "")}
    if protected is not None:
        row |= _export_reading(protected, " with the defence")
    if reading is not None:
        row["f1 by guessing"] = reading.prior.f1
    return row


def _export_reading(reading: Reading, when: str) -> dict[str, Any]:
    """Return a reading's recovered words, wrong words and F1 as export columns."""
    return {
        f"recovered{when}": " ".join(w.word for w in reading.hits),
        f"wrong{when}": " ".join(w.word for w in reading.wrong),
        f"f1{when}": reading.scores.f1,
    }


def selection_json(facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Serialise a map's facts and the selected points' export rows as JSON."""
    return json.dumps({**facts, "points": list(rows)}, ensure_ascii=False, indent=1)
