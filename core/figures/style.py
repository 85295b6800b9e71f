"""The look of every figure: what colours and symbols mean, and what all figures share."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.registry import Look, look_of
from core.results import Interval, Score
from core.studies.provenance import Provenance, measured_said

__all__ = [
    "BASELINE",
    "BELOW",
    "DASHES",
    "GRID",
    "LEAKED",
    "MISSED",
    "WRONG",
    "attack_label",
    "attack_look",
    "error_bars",
    "hover_line",
    "style",
]

_HOVER_WIDTH = 60
"""Letters of a line that a pointer shows."""

LEAKED = "#D55E00"
MISSED = "#009E73"
WRONG = "#8A8F96"
BASELINE = "#8A8F96"

DASHES = ("solid", "dash", "dot", "dashdot")
"""Strokes of lines that share a colour."""

GRID = "rgba(128,128,128,0.25)"

BELOW: dict[str, Any] = {
    "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0
}  # fmt: skip
"""A legend at the foot of its figure, clear of the title of the axis however that breaks."""


def attack_label(attack: str) -> str:
    """Return the title of an attack, broken for an axis."""
    return "<br>".join(wrap(INVERSION_ATTACKS[attack].title, 14))


def error_bars(
    scores: Sequence[Score], colour: str = "", *, thickness: float = 1, width: float = 3
) -> dict[str, Any]:
    """Return what draws the interval of each score; a score without one gets none."""
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
    """Return where a point comes from, as further lines of what a pointer shows; or nothing."""
    lines = wrap(measured_said(found), _HOVER_WIDTH)
    return "".join(f"<br>{escape(line)}" for line in lines)


def attack_look(attack: str) -> Look:
    """Return the colour and the symbol of an attack, the same in every figure."""
    return look_of(INVERSION_ATTACKS, attack)


def style(figure: go.Figure, *, height: int) -> None:
    """Apply what all figures share: no background, no zooming that traps a scrolling finger."""
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 24, "t": 30, "b": 30},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        dragmode=False,
        hoverlabel={"namelength": -1},
    )
    figure.update_xaxes(fixedrange=True)
    figure.update_yaxes(fixedrange=True)
