"""Sentences read back: how much of them, by how many queries are allowed, a line a length."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core.figures.style import error_bars
from core.results import Score
from core.studies.reconstruct import by_reader
from core.studies.rows import Row

__all__ = ["curves", "reconstruct_figure"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7")
_SHAPES = ("circle", "diamond", "square", "cross", "star")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def curves(rows: Sequence[Row]) -> dict[str, list[tuple[int, Score]]]:
    """Return ROUGE-L by queries, fewest first, of each length and defence."""
    found: dict[str, dict[int, Score]] = {}
    for (defence, reader, budget), own in by_reader(rows).items():
        if reader != "reconstruct":
            continue
        for row in own:
            behind = "" if defence == "none" else f", {defence}"
            name = f"{row.cell['length']} words{behind}"
            found.setdefault(name, {})[budget] = row.scores["rouge_l"]
    return {name: sorted(points.items()) for name, points in found.items()}


def reconstruct_figure(rows: Sequence[Row]) -> go.Figure:
    """Return ROUGE-L with its 95 % interval over the queries allowed."""
    figure = go.Figure()
    found = curves(rows)
    budgets = sorted({budget for curve in found.values() for budget, _ in curve})
    for i, (name, curve) in enumerate(found.items()):
        n = len(_COLOURS)
        figure.add_scatter(
            x=[budgets.index(budget) for budget, _ in curve],
            y=[score.value for _, score in curve],
            name=name,
            mode="lines+markers",
            line={"color": _COLOURS[i % n], "width": 2, "dash": _DASHES[i % n]},
            marker={"symbol": _SHAPES[i % n], "size": 9},
            error_y=error_bars([score for _, score in curve]),
        )
    figure.update_layout(
        title="Sentences read back, by the queries that the attacker may make"
        "<br><sup>ROUGE-L ×100 with 95 % intervals; 100 is the sentence word for word</sup>",
        xaxis={
            "title": "queries for each sentence",
            "tickvals": list(range(len(budgets))),
            "ticktext": [f"{n:,}" for n in budgets],
        },
        yaxis={"title": "ROUGE-L", "rangemode": "tozero"},
        legend={"orientation": "h", "y": -0.25},
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 80},
    )
    return figure
