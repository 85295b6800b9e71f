"""Points that were picked on a map, as files, and finding points by what their texts hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reading import Reading
from core.projection.points import Points

__all__ = ["matching_rows", "selection_json", "selection_rows"]


def folded(text: str) -> str:
    """Return a text as it is searched: NFKC, without case."""
    return normalize("NFKC", text).casefold()


def matching_rows(folded_texts: Sequence[str], sought: str) -> NDArray[np.int64]:
    """Return the positions of the texts that hold a piece of text; none for an empty one.

    Parameters
    ----------
    folded_texts : sequence of str
        As `folded` returns them.
    """
    wanted = folded(sought.strip())
    if not wanted:
        return np.empty(0, np.int64)
    return np.array([i for i, text in enumerate(folded_texts) if wanted in text], np.int64)


def selection_rows(
    points: Points,
    coordinates: NDArray[np.float32],
    rows: Sequence[int],
    readings: Mapping[int, Reading],
    protected: Mapping[int, Reading] | None = None,
) -> list[dict[str, Any]]:
    """Return one mapping a picked point: text, columns, place, and what an attack recovered.

    Parameters
    ----------
    readings, protected : mapping of position to Reading
        Of the vectors as they are, and under a defence.
    """
    under = protected or {}
    return [_row(points, coordinates[i], i, readings.get(i), under.get(i)) for i in rows]


def _row(
    points: Points,
    place: NDArray[np.float32],
    i: int,
    reading: Reading | None,
    protected: Reading | None,
) -> dict[str, Any]:
    row: dict[str, Any] = {"text": points.texts[i]}
    row |= {f"column {name}": values[i] for name, values in points.columns.items()}
    row |= {f"map {axis}": float(value) for axis, value in enumerate(place, 1)}
    if reading is not None:
        row |= {"attack": reading.attack, **_read(reading, "")}
    if protected is not None:
        row |= _read(protected, " with the defence")
    if reading is not None:
        row["f1 by guessing"] = reading.prior.f1
    return row


def _read(reading: Reading, when: str) -> dict[str, Any]:
    return {
        f"recovered{when}": " ".join(w.word for w in reading.hits),
        f"wrong{when}": " ".join(w.word for w in reading.wrong),
        f"f1{when}": reading.scores.f1,
    }


def selection_json(facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the facts of the map and the rows."""
    return json.dumps({**facts, "points": list(rows)}, ensure_ascii=False, indent=1)
