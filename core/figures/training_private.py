"""Figures of differentially private training: accuracy, membership and exposure by ε."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leakscope.core.figures.style import BASELINE, BELOW, GRID, LEAKED, error_bars, style
from leakscope.core.results import Score
from leakscope.core.studies.training.points import PrivateHead, PrivateModel

_LOOKS = (
    ("#0072B2", "circle", "solid"),
    ("#E69F00", "square", "dash"),
    ("#7A5FA8", "diamond", "longdash"),
)
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_APART = 0.08
"""Horizontal offset between heads, so that their intervals do not overlap."""


def describe_epsilon(epsilon: float) -> str:
    """Format an ε for axes and tables; ∞ for no privacy.

    Examples
    --------
    >>> describe_epsilon(8.0), describe_epsilon(float("inf"))
    ('8', '∞')
    """
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def private_figure(heads: Sequence[PrivateHead]) -> go.Figure:
    """Plot accuracy (top) and membership AUC (bottom) by ε, one line per head."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    epsilons = sorted({head.epsilon for head in heads})
    for i, hidden in enumerate(dict.fromkeys(head.hidden for head in heads)):
        own = [head for head in heads if head.hidden == hidden]
        places = [epsilons.index(head.epsilon) + _APART * i for head in own]
        _add_line(figure, own, places, [head.accuracy for head in own], i, row=1)
        _add_line(figure, own, places, [head.auc.in_percent() for head in own], i, row=2)
    _draw_chance(figure, heads[0].accuracy.chance, "y", f"guessing {heads[0].accuracy.chance:.0f}")
    _draw_chance(figure, 50, "y2", "coin toss: 50")
    style(figure, height=560)
    _legend_below(figure)
    _epsilon_axis(figure, epsilons, row=2)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="utility: accuracy, % →", row=1)
    figure.update_yaxes(title="leaks: membership AUC →", row=2)
    return figure


def exposure_figure(models: Sequence[PrivateModel]) -> go.Figure:
    """Plot the exposure of planted canaries by ε, and of canaries never planted."""
    figure = go.Figure()
    epsilons = [model.epsilon for model in models]
    kinds = (
        ("planted", LEAKED, "circle", "solid", [model.exposure for model in models]),
        ("planted nowhere", BASELINE, "circle-open", "dash", [model.controls for model in models]),
    )
    for name, colour, symbol, dash, scores in kinds:
        figure.add_scatter(
            x=list(range(len(models))),
            y=[score.value for score in scores],
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 10, "color": colour},
            error_y=error_bars(scores, colour),
            customdata=[
                [describe_epsilon(e), s.format()] for e, s in zip(epsilons, scores, strict=True)
            ],
            hovertemplate=f"ε %{{customdata[0]}}: %{{customdata[1]}} bits<extra>{name}</extra>",
        )
    chance = models[0].exposure.chance
    _draw_chance(figure, chance, "y", f"expected if not planted: {chance:.2f}")
    style(figure, height=380)
    _legend_below(figure)
    _epsilon_axis(figure, epsilons)
    figure.update_yaxes(
        title="exposure, bits →", gridcolor=GRID, zeroline=False, rangemode="tozero"
    )
    return figure


def _add_line(
    figure: go.Figure,
    heads: Sequence[PrivateHead],
    places: Sequence[float],
    scores: Sequence[Score],
    i: int,
    *,
    row: int,
) -> None:
    """Add one head's line of scores over ε."""
    colour, symbol, dash = _LOOKS[i % len(_LOOKS)]
    unit = " %" if row == 1 else ""
    figure.add_scatter(
        x=list(places),
        y=[score.value for score in scores],
        mode="lines+markers",
        name=f"head: {heads[0].head}",
        legendgroup=str(i),
        showlegend=row == 1,
        line={"color": colour, "width": 2, "dash": dash},
        marker={"symbol": symbol, "size": 9, "color": colour},
        error_y=error_bars(scores, colour),
        customdata=[
            [describe_epsilon(head.epsilon), score.format() + unit]
            for head, score in zip(heads, scores, strict=True)
        ],
        hovertemplate=f"ε %{{customdata[0]}}: %{{customdata[1]}}<extra>{heads[0].head}</extra>",
        row=row,
        col=1,
    )


def _draw_chance(figure: go.Figure, chance: float, axis: str, told: str) -> None:
    """Draw the chance level."""
    if math.isnan(chance):
        return
    figure.add_shape(
        type="line", x0=0, x1=1, xref="paper", y0=chance, y1=chance, yref=axis, line=_DOTTED
    )
    figure.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=chance,
        yref=axis,
        yanchor="bottom",
        text=told,
        showarrow=False,
    )


def _epsilon_axis(figure: go.Figure, epsilons: Sequence[float], **place: int) -> None:
    """Label the x-axis with the ε values."""
    names = [describe_epsilon(epsilon) for epsilon in epsilons]
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        range=[-0.4, len(names) - 0.6],
        gridcolor=GRID,
        zeroline=False,
    )
    figure.update_xaxes(title="ε: less privacy →", **place)


def _legend_below(figure: go.Figure) -> None:
    """Put the legend below the figure."""
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)
