"""The selected points of a map and their attack results, kept in the session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.projection.job import MapRequest

_SELECTED = "_selected_points"


def selected_rows(request: MapRequest) -> list[int]:
    """Return the selected points of a map; none if another map was selected from."""
    last: tuple[MapRequest, list[int]] | None = st.session_state.get(_SELECTED)
    return list(last[1]) if last is not None and last[0] == request else []


def select(request: MapRequest, rows: Sequence[int]) -> None:
    """Select points of a map, from a callback or before the map is drawn."""
    st.session_state[_SELECTED] = (request, sorted(rows))


def clear_selection() -> None:
    """Clear the selection, from a callback."""
    st.session_state.pop(_SELECTED, None)


def cached_result(kind: str, key: object, make: Any) -> Any:
    """Return `make()`, cached for each kind until the key changes."""
    store = st.session_state.setdefault("_selection_readings", {})
    if kind not in store or store[kind][0] != key:
        store[kind] = (key, make())
    return store[kind][1]
