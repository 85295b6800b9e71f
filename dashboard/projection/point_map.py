"""The interactive map in two dimensions: a canvas on which points are moved, found and selected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from leakscope.core.assets import ROOT
from leakscope.core.figures.point_map import rows_of

_HERE = ROOT / "dashboard" / "projection"
_BUTTONS = (
    ("select", "Select", "Draw a loop around points, or click one"),
    ("move", "Move", "Drag to move the map; Ctrl and the wheel zoom"),
    ("in", "+", "Zoom in"),
    ("out", "−", "Zoom out"),
    ("home", "Whole map", "Show all points"),
    ("view", "Select view", "Select all points in view"),
    ("save", "PNG", "Save the picture"),
)
_BAR = "".join(
    f'<button type="button" data-action="{action}" aria-label="{about}" title="{about}">'
    f"{label}</button>"
    for action, label, about in _BUTTONS
)
BODY = f"""<div class="point-map">
<div class="frame"><canvas role="img" tabindex="0"></canvas><canvas aria-hidden="true"></canvas>
<div class="bar" role="toolbar" aria-label="Map">{_BAR}</div><div class="tip" hidden></div></div>
<div class="legend"></div></div>"""
"""The elements of a map, which its script fills."""
_canvas = component(
    "leakscope_point_map",
    html=BODY,
    css=(_HERE / "point_map.css").read_text(encoding="utf-8"),
    js=(_HERE / "point_map.js").read_text(encoding="utf-8"),
)


def point_map(
    data: dict[str, Any], n_points: int, on_pick: Callable[[list[int]], None], key: str
) -> None:
    """Draw a map; call `on_pick` with the rows of the points that the visitor selects.

    Parameters
    ----------
    data : dict
        From `point_map_data`.
    n_points : int
        The number of points.
    """
    _canvas(
        key=key,
        data=data,
        on_picked_change=partial(_pick, key, data["points"]["key"], n_points, on_pick),
    )


def _pick(key: str, of: str, n_points: int, on_pick: Callable[[list[int]], None]) -> None:
    """Hand over the selected points, unless they are those of an earlier map."""
    picked = st.session_state[key].picked
    if picked and picked["key"] == of:
        on_pick(rows_of(picked["bits"], n_points))
