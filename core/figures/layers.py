"""The figure of the study by layer: computes nothing, draws what it is given."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

__all__ = ["layers_figure"]

# Okabe–Ito, and a shape and a dash besides: never colour alone.
_STYLE = {
    "Eq. 5": {"color": "#0072B2", "symbol": "diamond", "dash": "dash", "name": "relaxation, Eq. 5"},
    "Eq. 7": {"color": "#D55E00", "symbol": "circle", "dash": "solid", "name": "sparse, Eq. 7"},
}


def layers_figure(result: dict[str, Any]) -> go.Figure:
    """Return token-set F1 with its 95 % interval by layer, one line per equation."""
    figure = go.Figure()
    for equation, style in _STYLE.items():
        rows = [row for row in result["rows"] if row["equation"] == equation]
        if not rows:
            continue
        f1 = [row["token_set_f1"] for row in rows]
        low, high = zip(*(row["token_set_f1_ci95"] for row in rows), strict=True)
        figure.add_scatter(
            x=[row["layer"] for row in rows],
            y=f1,
            name=style["name"],
            mode="lines+markers+text",
            text=["" if i != min(1, len(rows) - 1) else style["name"] for i in range(len(rows))],
            textposition="top right",
            cliponaxis=False,
            line={"color": style["color"], "dash": style["dash"], "width": 2},
            marker={"symbol": style["symbol"], "size": 9},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [b - a for a, b in zip(f1, high, strict=True)],
                "arrayminus": [a - b for a, b in zip(f1, low, strict=True)],
                "thickness": 1,
                "width": 3,
            },
            hovertemplate="layer %{x}: F1 %{y:.1f}<extra>" + style["name"] + "</extra>",
        )
    guess = result["prior_f1"]
    figure.add_hline(
        y=guess,
        line={"color": "#8A8F96", "dash": "dot", "width": 2},
        annotation={"text": f"guessing without the vector, {guess:.1f}", "xanchor": "right"},
    )
    figure.update_layout(
        title=f"Words recovered, by layer of {result['encoder']}<br><sup>{result['n']} sentences a "
        "layer, 95 % intervals, stop words not scored</sup>",
        xaxis={"title": "encoder layer (0: mean of token vectors)", "dtick": 1},
        yaxis={"title": "token-set F1", "range": [0, 100]},
        showlegend=False,
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 60},
    )
    return figure
