"""The learning curve: what an attacker reads, by how many texts it learnt from."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

__all__ = ["learning_figure"]


def learning_figure(result: dict[str, Any]) -> go.Figure:
    """Return F1 with its 95 % interval over the number of auxiliary texts, a line a target."""
    figure = go.Figure()
    colours, shapes = ("#0072B2", "#D55E00", "#009E73"), ("circle", "diamond", "square")
    for i, name in enumerate(dict.fromkeys(row["target"] for row in result["rows"])):
        rows = [row for row in result["rows"] if row["target"] == name]
        f1 = [row["token_set_f1"] for row in rows]
        low, high = zip(*(row["token_set_f1_ci95"] for row in rows), strict=True)
        figure.add_scatter(
            x=[row["n_auxiliary"] for row in rows],
            y=f1,
            name=f"{name}: {result['gains'][name]:+.1f} a doubling",
            mode="lines+markers",
            line={"color": colours[i % 3], "width": 2, "dash": ("solid", "dash", "dot")[i % 3]},
            marker={"symbol": shapes[i % 3], "size": 9},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [b - a for a, b in zip(f1, high, strict=True)],
                "arrayminus": [a - b for a, b in zip(f1, low, strict=True)],
                "thickness": 1,
                "width": 3,
            },
        )
    sizes = sorted({row["n_auxiliary"] for row in result["rows"]})
    figure.update_layout(
        title=f"{result['attack']}: words recovered, by auxiliary texts known to the attacker"
        "<br><sup>95 % intervals; the gain is over the three largest sizes</sup>",
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
