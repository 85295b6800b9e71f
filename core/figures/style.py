"""Colours, symbols and layout that all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.registry import Look, marker_style
from leakscope.core.results import Interval, Score
from leakscope.core.results.provenance import Provenance, describe_measured

_HOVER_WIDTH = 60
"""Maximum number of letters per hover line."""

LEAKED = "#D55E00"
MISSED = "#757B84"
"""Grey, not green: what an attack missed is not safe."""
WRONG = "#8A8F96"
BASELINE = "#8A8F96"

DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
"""The line of a baseline, such as chance."""

DASHES = ("solid", "dash", "dot", "dashdot")
"""Line dashes for lines that share a colour."""

GRID = "rgba(128,128,128,0.25)"

BELOW: dict[str, Any] = {
    "orientation": "h",
    "yref": "container",
    "yanchor": "bottom",
    "y": 0,
    "x": 0,
}
"""A legend at the bottom of the figure, clear of the axis title however that wraps."""


def attack_label(attack: str) -> str:
    """Return a named attack's title with line breaks, for an axis."""
    return "<br>".join(wrap(INVERSION_ATTACKS[attack].title, 14))


def error_bars(
    scores: Sequence[Score], colour: str = "", *, thickness: float = 1, width: float = 3
) -> dict[str, Any]:
    """Build Plotly's error-bar settings from scores' intervals; no bar for a score without one."""
    ends = [s.ci95 if s.has_interval else Interval(s.value, s.value) for s in scores]
    drawn = {
        "type": "data",
        "symmetric": False,
        "array": [end.high - score.value for end, score in zip(ends, scores, strict=True)],
        "arrayminus": [score.value - end.low for end, score in zip(ends, scores, strict=True)],
        "thickness": thickness,
        "width": width,
    }
    return {**drawn, "color": colour} if colour else drawn


def hover_line(found: Sequence[Provenance | None]) -> str:
    """Describe the provenances of a point in extra hover lines; "" if none is known."""
    lines = wrap(describe_measured(found), _HOVER_WIDTH)
    return "".join(f"<br>{escape(line)}" for line in lines)


def attack_look(attack: str) -> Look:
    """Return the colour and symbol of a named attack."""
    return marker_style(INVERSION_ATTACKS, attack)


def style(figure: go.Figure, *, height: int) -> None:
    """Apply the shared layout to a figure in place: transparent background, no zoom, margins."""
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 24, "t": 30, "b": 30},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        hoverlabel={"namelength": -1},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": BASELINE, "activecolor": LEAKED},
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
