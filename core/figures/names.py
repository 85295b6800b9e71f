"""Figures of the names experiment: attackers' success rates and the substitution matrix."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from leakscope.core.figures.style import BASELINE, GRID, LEAKED, WRONG, error_bars, style
from leakscope.core.names.experiment import NOT_TESTABLE, NameAttacker
from leakscope.core.results import Score

_SHADES = (
    ("#FFFFFF", "rgb(244, 186, 140)", "rgb(232, 125, 45)"),
    ("#12161B", "rgb(86, 44, 13)", "rgb(160, 72, 0)"),
)
"""Colour scale from the page's background (light or dark, at 0 %) to the colour of leaks."""

_INK = ("#1B1F24", "#E8EBEE")
"""Text colours in the cells; contrast of at least 4.5 on every shade."""

_HATCHED = {
    "color": "rgba(138, 143, 150, 0.15)",
    "pattern": {"shape": "/", "fgcolor": WRONG, "size": 8, "solidity": 0.12},
}
"""Style of "not testable", which is neither a leak nor safe."""

_FRAME = ("#0072B2", "#56B4E9")

_TOOLS = 34
"""Pixels above the names, reserved for the tool bar."""

_LEVEL = 6
"""Maximum number of columns with horizontal names; more are slanted."""


_ATTACKERS = {
    "": "No list of names:<br>recovers words",
    "alone": "Has the list",
    "recovered": "Has the list and<br>recovered words",
    "sentence": "Has the list and the<br>rest of the sentence",
}
"""Axis labels: what each attacker has."""


def name_attackers(found: Sequence[NameAttacker]) -> go.Figure:
    """Return a figure of how often each attacker finds the name, with interval and guessing.

    An attacker that could not be tested on any name has a hatched bar over the whole width.
    """
    labels = [_ATTACKERS[one.knows] for one in found]
    tested = [(label, one) for label, one in zip(labels, found, strict=True) if one.is_testable]
    figure = go.Figure()
    figure.add_bar(
        x=[one.rate.value for _, one in tested],
        y=[label for label, _ in tested],
        orientation="h",
        marker={"color": LEAKED},
        error_x=error_bars([one.rate for _, one in tested], BASELINE, thickness=2, width=5),
        text=[f"<b>{one.n_found} of {one.n_asked}</b>" for _, one in tested],
        textposition="inside",
        insidetextanchor="start",
        hovertemplate="%{y}: %{x:.0f} %<extra></extra>",
        showlegend=False,
    )
    untested = [label for label, one in zip(labels, found, strict=True) if not one.is_testable]
    if untested:
        figure.add_bar(
            x=[100] * len(untested),
            y=untested,
            orientation="h",
            marker=_HATCHED,
            text=[NOT_TESTABLE] * len(untested),
            textposition="inside",
            insidetextanchor="middle",
            hovertemplate="%{y}: " + NOT_TESTABLE + "<extra></extra>",
            showlegend=False,
        )
    figure.add_scatter(
        x=[one.rate.chance for _, one in tested if one.rate.chance],
        y=[label for label, one in tested if one.rate.chance],
        mode="markers",
        marker={"symbol": "line-ns-open", "size": 26, "color": BASELINE, "line": {"width": 2}},
        name="guessing",
        hovertemplate="guessing: %{x:.0f} %<extra></extra>",
    )
    style(figure, height=90 + 44 * len(found))
    figure.update_layout(
        margin={"t": 30, "b": 44},
        bargap=0.4,
        barmode="overlay",
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},  # clear of the toolbar
    )
    figure.update_xaxes(
        range=[0, 101], title="Name found, % of the vectors tested", dtick=25, gridcolor=GRID
    )
    figure.update_yaxes(categoryorder="array", categoryarray=labels[::-1], automargin=True)
    return figure


def name_map(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Score]],
    *,
    notes: Sequence[str] = (),
    testable: Sequence[bool] = (),
    chosen: tuple[int, int] | None = None,
    is_dark: bool = False,
) -> go.Figure:
    """Return a clickable heat map of the recovery rates, by original and inserted name.

    Parameters
    ----------
    rows, columns : sequence of str
        Owners of the sentences, and inserted names.
    cells : sequence of rows of Score
    notes : sequence of str
        A line below each column's name, such as a training count.
    testable : sequence of bool
        Whether the attack can answer each column's name; by default all. A column that it cannot
        answer is hatched and has no number: 0 would suggest safety.
    chosen : (row, column), optional
        The cell to frame.
    is_dark : bool
        Whether the page's background is dark.

    Notes
    -----
    The `customdata` of a point is its (row, column).
    """
    figure = go.Figure()
    can = list(testable) or [True] * len(columns)
    _add_cells(figure, rows, columns, cells, can, is_dark=is_dark)
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
    testable: Sequence[bool],
    *,
    is_dark: bool,
) -> None:
    """Add the heat map to a figure, and an invisible selectable point on every cell."""
    across, down = list(range(len(columns))), list(range(len(rows)))
    figure.add_heatmap(
        x=across,
        y=down,
        z=[
            [
                rate.value if rate.n and can else None
                for rate, can in zip(row, testable, strict=True)
            ]
            for row in cells
        ],
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
    hatched = [j for j in across if not testable[j]]
    if hatched:
        figure.add_bar(
            x=hatched,
            base=[-0.5] * len(hatched),
            y=[len(rows)] * len(hatched),
            width=0.97,
            marker=_HATCHED,
            hoverinfo="skip",
            showlegend=False,
        )
    # Plotly selects only points of scatter plots.
    points = [(i, j) for i in down for j in across]
    figure.add_scatter(
        x=[j for _, j in points],
        y=[i for i, _ in points],
        mode="markers",
        marker={"size": 34, "symbol": "square", "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=points,
        text=[
            _hover_text(rows[i], columns[j], cells[i][j])
            if testable[j]
            else f"{_safe(columns[j])}: {NOT_TESTABLE}"
            for i, j in points
        ],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )


def _label_axes(
    figure: go.Figure, rows: Sequence[str], columns: Sequence[str], notes: Sequence[str]
) -> None:
    """Label the rows and columns of a figure's matrix."""
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
    """Return the column labels of a matrix, each with its note below."""
    labels = [_label(name) for name in columns]
    if not notes:
        return labels
    return [f"{label}<br>{_safe(note)}" for label, note in zip(labels, notes, strict=True)]


def _label(name: str) -> str:
    """Return a name shortened and escaped for an axis."""
    return _safe(name if len(name) <= 13 else f"{name[:12]}…")


def _safe(text: str) -> str:
    """Escape a text for Plotly, where < and & are markup and %{ a field."""
    return escape(text).replace("%", "&#37;")


def _hover_text(row: str, column: str, rate: Score) -> str:
    """Return a cell's hover text: row, column, recovery rate and interval."""
    if not rate.n:
        return f"no sentence of {_safe(row)}"
    value, interval = rate.parts(0)
    return (
        f"{_safe(column)} in sentences of {_safe(row)}:<br>{value} % of {rate.n} "
        f"(95 % CI {interval})"
    )
