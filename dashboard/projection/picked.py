"""Which points of a map are selected, and what was read of them, for this session alone.

A chart that changes forgets its selection; the page does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.projection.state import MapRequest

__all__ = [
    "chart_number",
    "clear_selection",
    "marked_rows",
    "remember_selection",
    "select",
    "selection_of",
]


@dataclass
class _Picked:
    """The selected points of a map, and whether the chart itself knows of them."""

    request: MapRequest
    rows: list[int]
    figure: object
    is_by_chart: bool = False
    to_mark: tuple[int, ...] = ()
    """What the figure marks by itself, since it forgot its selection when it changed."""


def marked_rows(request: MapRequest, figure: object) -> tuple[int, ...]:
    """Return the selected points that a figure has to mark by itself; none for most figures.

    A chart that changes forgets its selection. One that stays must not be handed other marks: that
    would be a change, and so forget what is being selected.
    """
    kept: _Picked | None = st.session_state.get("_picked")
    if kept is None or kept.request != request:
        return ()
    return kept.to_mark if kept.figure == figure else tuple(kept.rows)


def selection_of(request: MapRequest, picked: Sequence[int], figure: object) -> list[int]:
    """Return the selected points: those just picked, or those picked before on this map.

    A chart that changes forgets its selection, and that must not empty the table: an empty pick
    counts only where the same figure held a selection before.
    """
    kept: _Picked | None = st.session_state.get("_picked")
    to_mark = marked_rows(request, figure)
    rows = list(picked)
    if not picked and kept is not None and kept.request == request:
        is_undone = kept.figure == figure and kept.is_by_chart
        rows = [] if is_undone else list(kept.rows)
    st.session_state["_picked"] = _Picked(request, rows, figure, bool(picked), to_mark)
    return rows


def select(request: MapRequest, rows: Sequence[int]) -> None:
    """Select points of a map before its chart is drawn, which then marks them by itself."""
    st.session_state["_picked"] = _Picked(request, list(rows), None)


def clear_selection() -> None:
    """Forget the selected points, from a callback; the chart is drawn anew without them."""
    st.session_state.pop("_picked", None)
    st.session_state["_chart_number"] = chart_number() + 1


def chart_number() -> int:
    """Return a number that changes when the chart has to forget what is selected in it."""
    return int(st.session_state.get("_chart_number", 0))


def remember_selection(kind: str, key: object, make: Any) -> Any:
    """Return what `make` returns, made once for a kind while the key stays the same."""
    store = st.session_state.setdefault("_selection_readings", {})
    if kind not in store or store[kind][0] != key:
        store[kind] = (key, make())
    return store[kind][1]
