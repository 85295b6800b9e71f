"""The heat map of names: how often each surname is read from whose sentences."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from core.figures.style import GRID, style
from core.results import Score

__all__ = ["name_map"]

_SHADES = (
    ("#FFFFFF", "rgb(244, 186, 140)", "rgb(232, 125, 45)"),
    ("#12161B", "rgb(86, 44, 13)", "rgb(160, 72, 0)"),
)
"""From the page's background, light or dark, towards the colour of what leaked: 0 % is the least
conspicuous."""

_INK = ("#1B1F24", "#E8EBEE")
"""Of the figures in the cells: a contrast of 4.5 or more on every shade."""

_FRAME = ("#0072B2", "#56B4E9")

_TOOLS = 34
"""Pixels above the names, for the tool bar."""

_LEVEL = 6
"""Columns whose names fit side by side; more stand aslant."""


def name_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Score]],
    *,
    notes: Sequence[str] = (),
    chosen: tuple[int, int] | None = None,
    is_dark: bool = False,
) -> go.Figure:
    """Return the matrix with its values printed in the cells; each cell can be clicked.

    Parameters
    ----------
    rows, columns : sequence of str
        Whose sentences, and the name put in.
    cells : sequence of rows of Score
    notes : sequence of str
        A line below each column's name, such as a training count.
    chosen : (row, column), optional
        The cell to frame.
    is_dark : bool
        Whether the page's background is.

    Notes
    -----
    The `customdata` of a point is its (row, column).
    """
    figure = go.Figure()
    _add_cells(figure, rows, columns, cells, is_dark=is_dark)
    if chosen is not None:
        i, j = chosen
        line = {"color": _FRAME[is_dark], "width": 4}
        figure.add_shape(type="rect", x0=j - 0.5, x1=j + 0.5, y0=i - 0.5, y1=i + 0.5, line=line)
    top = _TOOLS + (64 if len(columns) <= _LEVEL else 110)
    style(figure, height=top + 12 + 48 * len(rows))
    figure.update_layout(
        margin={"t": top, "b": 12, "r": 8}, clickmode="event+select", plot_bgcolor=GRID
    )
    _label_axes(figure, rows, columns, notes)
    return figure


def _add_cells(
    figure: go.Figure,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Score]],
    *,
    is_dark: bool,
) -> None:
    """Draw the matrix, and a point without colour on every cell, to be selected."""
    across, down = list(range(len(columns))), list(range(len(rows)))
    figure.add_heatmap(
        x=across,
        y=down,
        z=[[None if rate.n == 0 else rate.value for rate in row] for row in cells],
        zmin=0,
        zmax=100,
        showscale=False,
        colorscale=[[i / 2, shade] for i, shade in enumerate(_SHADES[is_dark])],
        xgap=2,
        ygap=2,
        texttemplate="%{z:.0f}",
        textfont={"color": _INK[is_dark], "size": 15},
        hoverinfo="skip",
    )
    # Plotly selects points of scatter plots alone.
    points = [(i, j) for i in down for j in across]
    figure.add_scatter(
        x=[j for _, j in points],
        y=[i for i, _ in points],
        mode="markers",
        marker={"size": 34, "symbol": "square", "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=points,
        text=[_told(rows[i], columns[j], cells[i][j]) for i, j in points],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _label_axes(
    figure: go.Figure, rows: Sequence[str], columns: Sequence[str], notes: Sequence[str]
) -> None:
    beside, above = 0.008 * len(columns), 0.05  # about three pixels, for the frame of a cell
    figure.update_xaxes(
        tickvals=list(range(len(columns))),
        ticktext=_headings(columns, notes),
        side="top",
        showgrid=False,
        zeroline=False,
        range=[-0.5 - beside, len(columns) - 0.5 + beside],
        tickfont={"size": 13},
        tickangle=0 if len(columns) <= _LEVEL else -60,
    )
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[_label(name) for name in rows],
        automargin=True,
        showgrid=False,
        zeroline=False,
        range=[len(rows) - 0.5 + above, -0.5 - above],
        ticklabelstandoff=4,
        tickfont={"size": 13},
    )


def _headings(columns: Sequence[str], notes: Sequence[str]) -> list[str]:
    """Return the names of the columns, each above its note."""
    labels = [_label(name) for name in columns]
    if not notes:
        return labels
    return [f"{label}<br>{_safe(note)}" for label, note in zip(labels, notes, strict=True)]


def _label(name: str) -> str:
    return _safe(name if len(name) <= 13 else f"{name[:12]}…")


def _safe(text: str) -> str:
    """Return a text for a figure, in which < and & are markup and %{ a field."""
    return escape(text).replace("%", "&#37;")


def _told(row: str, column: str, rate: Score) -> str:
    if not rate.n:
        return f"no sentence of {_safe(row)}"
    return (
        f"{_safe(column)} in sentences of {_safe(row)}:<br>{rate.value:.0f} % of {rate.n} "
        f"({rate.ci95.said(0)})"
    )
