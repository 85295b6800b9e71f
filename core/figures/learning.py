"""Learning curve: an attacker's F1 by number of training texts."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.figures.style import error_bars
from leakscope.core.results.rows import Row
from leakscope.core.studies.inversion.cell_attacks import describe_attack
from leakscope.core.studies.inversion.scaling import curves, gain_per_doubling

_COLOURS = ("#0072B2", "#D55E00", "#009E73")
_SHAPES = ("circle", "diamond", "square")
_DASHES = ("solid", "dash", "dot")


def scaling_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot result rows' F1 with its 95 % CI by number of training texts, one line per curve."""
    figure = go.Figure()
    found = curves(rows)
    for i, (name, curve) in enumerate(found.items()):
        scores = [row.scores["token_set_f1"] for row in curve]
        figure.add_scatter(
            x=[row.facts["n_fitted_on"] for row in curve],
            y=[score.value for score in scores],
            name=f"{name}: {gain_per_doubling(curve):+.1f} per doubling",
            mode="lines+markers",
            line={"color": _COLOURS[i % 3], "width": 2, "dash": _DASHES[i % 3]},
            marker={"symbol": _SHAPES[i % 3], "size": 9},
            error_y=error_bars(scores),
        )
    sizes = sorted({row.facts["n_fitted_on"] for curve in found.values() for row in curve})
    attacks = ", ".join(dict.fromkeys(describe_attack(c[0]) for c in found.values()))
    figure.update_layout(
        title=f"{attacks}: words recovered, by number of auxiliary texts"
        "<br><sup>95 % CI; gain per doubling over the three largest sizes</sup>",
        xaxis={
            "title": "auxiliary texts",
            "type": "log",
            "tickvals": sizes,
            "ticktext": [f"{n:,}" for n in sizes],
        },
        yaxis={"title": "token-set F1", "rangemode": "tozero"},
        legend={"orientation": "h", "y": -0.25},
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 80},
    )
    return figure
