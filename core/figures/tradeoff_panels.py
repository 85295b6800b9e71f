"""All tasks of the trade-off beside each other: computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.defences.registry import DEFENCES
from core.figures.style import BASELINE, GRID, style
from core.registry import look_of
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said

__all__ = ["tradeoff_panels"]


def tradeoff_panels(
    found: Tradeoff, chosen: Mapping[str, Point], *, n_columns: int = 4
) -> go.Figure:
    """Return leakage over usefulness, a small panel a task, the same leakage in each.

    Parameters
    ----------
    chosen : mapping of str to Point
        Of each task, the point to ring.
    """
    tasks = found.tasks
    n_rows = -(-len(tasks) // n_columns)
    titles = ["<br>".join(wrap(task_said(task), 24)) for task in tasks]
    figure = make_subplots(n_rows, n_columns, subplot_titles=titles, shared_yaxes=True)
    for number, task in enumerate(tasks):
        row, column = divmod(number, n_columns)
        place = {"row": row + 1, "col": column + 1}
        for name in dict.fromkeys(point.defence for point in found.points):
            _dots(figure, found, name, task, place, is_named=number == 0)
        _ring(figure, chosen[task], task, place)
    style(figure, height=90 + 210 * n_rows)
    figure.update_layout(
        legend={"orientation": "h", "yanchor": "top", "y": -0.12, "x": 0},
        margin={"l": 0, "r": 12, "t": 60, "b": 10},
    )
    figure.update_annotations(font_size=12)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, rangemode="tozero")
    figure.update_yaxes(title="leaks, F1 →", col=1)
    return figure


def _dots(
    figure: go.Figure, found: Tradeoff, name: str, task: str, place: dict[str, int], *,
    is_named: bool,
) -> None:  # fmt: skip
    """Draw the strengths of one defence for one task."""
    colour, symbol = look_of(DEFENCES, name)
    members = [point for point in found.points if point.defence == name]
    title = DEFENCES[name].title
    figure.add_scatter(
        x=[point.utility[task].value for point in members],
        y=[point.leakage.value for point in members],
        mode="markers",
        name=title,
        legendgroup=name,
        showlegend=is_named,
        marker={"symbol": symbol, "size": 11 if DEFENCES[name].is_baseline else 7,
                "color": colour},
        text=[point.label or title for point in members],
        hovertemplate=f"{title}, %{{text}}<br>useful %{{x:.1f}}, leaks %{{y:.1f}}<extra></extra>",
        **place,
    )  # fmt: skip


def _ring(figure: go.Figure, point: Point, task: str, place: dict[str, int]) -> None:
    figure.add_scatter(
        x=[point.utility[task].value],
        y=[point.leakage.value],
        mode="markers",
        marker={"size": 16, "symbol": "circle-open", "color": BASELINE, "line": {"width": 2.5}},
        hoverinfo="skip",
        showlegend=False,
        **place,
    )
