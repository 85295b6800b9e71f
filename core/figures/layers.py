"""Figure of the study by encoder layer."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.figures.style import BASELINE, error_bars
from leakscope.core.results.rows import Row

# Okabe–Ito colours; shape and dash repeat what the colour shows.
_STYLE = {
    "Eq. 5": {"color": "#0072B2", "symbol": "diamond", "dash": "dash", "name": "relaxation, Eq. 5"},
    "Eq. 7": {"color": "#D55E00", "symbol": "circle", "dash": "solid", "name": "sparse, Eq. 7"},
}


def layers_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot result rows' token-set F1 with its 95 % CI by layer, one line per equation.

    If there are several encoders, domains or seeds, only the first is drawn.
    """
    measured = [row for row in rows if not row.error]
    first = measured[0]
    same = ("encoder", "domain", "seed")
    shown = [row for row in measured if all(row[name] == first[name] for name in same)]
    figure = go.Figure()
    for equation, style in _STYLE.items():
        own = [row for row in shown if row["equation"] == equation]
        if not own:
            continue
        scores = [row.scores["token_set_f1"] for row in own]
        figure.add_scatter(
            x=[row["layer"] for row in own],
            y=[score.value for score in scores],
            name=style["name"],
            mode="lines+markers+text",
            text=["" if i != min(1, len(own) - 1) else style["name"] for i in range(len(own))],
            textposition="top right",
            cliponaxis=False,
            line={"color": style["color"], "dash": style["dash"], "width": 2},
            marker={"symbol": style["symbol"], "size": 9},
            error_y=error_bars(scores),
            hovertemplate="layer %{x}: F1 %{y:.1f}<extra>" + style["name"] + "</extra>",
        )
    guess = first.scores["token_set_f1"].chance
    figure.add_hline(
        y=guess,
        line={"color": BASELINE, "dash": "dot", "width": 2},
        annotation={"text": f"guessing without the vector: {guess:.1f}", "xanchor": "right"},
    )
    figure.update_layout(
        title=f"Words recovered, by layer of {first['encoder']}<br><sup>{first['n']} sentences "
        "per layer, 95 % CI, stop words not scored</sup>",
        xaxis={"title": "encoder layer (0: mean of token vectors)", "dtick": 1},
        yaxis={"title": "token-set F1", "range": [0, 100]},
        showlegend=False,
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 60},
    )
    return figure
