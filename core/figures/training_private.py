"""What differential privacy in training costs, and what it leaves readable: computes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.figures.style import BASELINE, BELOW, GRID, LEAKED, MISSED, error_bars, style
from core.results import Score
from core.studies.private_points import PrivateHead, PrivateModel

__all__ = ["epsilon_said", "exposure_figure", "private_figure"]

_LOOKS = (("#0072B2", "circle", "solid"), ("#E69F00", "square", "dash"),
          ("#7A5FA8", "diamond", "longdash"))  # fmt: skip
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_APART = 0.08
"""Of heads, so that their intervals stand side by side."""


def epsilon_said(epsilon: float) -> str:
    """Return an ε as axes and tables have it.

    Examples
    --------
    >>> epsilon_said(8.0), epsilon_said(float("inf"))
    ('8', '∞')
    """
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def private_figure(heads: Sequence[PrivateHead]) -> go.Figure:
    """Return accuracy above, and the AUC of membership below, by ε; a line a head."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    epsilons = sorted({head.epsilon for head in heads})
    for i, hidden in enumerate(dict.fromkeys(head.hidden for head in heads)):
        own = [head for head in heads if head.hidden == hidden]
        places = [epsilons.index(head.epsilon) + _APART * i for head in own]
        _line(figure, own, places, [head.accuracy for head in own], i, row=1)
        _line(figure, own, places, [head.auc.in_percent() for head in own], i, row=2)
    _guessing(figure, heads[0].accuracy.chance, "y", f"guessing {heads[0].accuracy.chance:.0f}")
    _guessing(figure, 50, "y2", "a coin: 50")
    style(figure, height=560)
    _below(figure)
    _by_epsilon(figure, epsilons, row=2)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="useful: accuracy, % →", row=1)
    figure.update_yaxes(title="members found: AUC →", row=2)
    return figure


def exposure_figure(models: Sequence[PrivateModel]) -> go.Figure:
    """Return the exposure of planted canaries by ε, above those that were planted nowhere."""
    figure = go.Figure()
    epsilons = [model.epsilon for model in models]
    kinds = (
        ("planted", LEAKED, "circle", "solid", [model.exposure for model in models]),
        ("planted nowhere", MISSED, "circle-open", "dot", [model.controls for model in models]),
    )
    for name, colour, symbol, dash, scores in kinds:
        figure.add_scatter(
            x=list(range(len(models))), y=[score.value for score in scores], mode="lines+markers",
            name=name, line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 10, "color": colour},
            error_y=error_bars(scores, colour),
            customdata=[[epsilon_said(e), s.said()]
                        for e, s in zip(epsilons, scores, strict=True)],
            hovertemplate="ε %{customdata[0]}: %{customdata[1]} bits" f"<extra>{name}</extra>",
        )  # fmt: skip
    chance = models[0].exposure.chance
    _guessing(figure, chance, "y", f"their law's mean {chance:.2f}")
    style(figure, height=380)
    _below(figure)
    _by_epsilon(figure, epsilons)
    figure.update_yaxes(title="exposure, bits →", gridcolor=GRID, zeroline=False,
                        rangemode="tozero")  # fmt: skip
    return figure


def _line(
    figure: go.Figure, heads: Sequence[PrivateHead], places: Sequence[float],
    scores: Sequence[Score], i: int, *, row: int,
) -> None:  # fmt: skip
    colour, symbol, dash = _LOOKS[i % len(_LOOKS)]
    unit = " %" if row == 1 else ""
    figure.add_scatter(
        x=list(places), y=[score.value for score in scores], mode="lines+markers",
        name=f"head: {heads[0].head}", legendgroup=str(i), showlegend=row == 1,
        line={"color": colour, "width": 2, "dash": dash},
        marker={"symbol": symbol, "size": 9, "color": colour},
        error_y=error_bars(scores, colour),
        customdata=[[epsilon_said(head.epsilon), score.said() + unit]
                    for head, score in zip(heads, scores, strict=True)],
        hovertemplate="ε %{customdata[0]}: %{customdata[1]}" f"<extra>{heads[0].head}</extra>",
        row=row, col=1,
    )  # fmt: skip


def _guessing(figure: go.Figure, chance: float, axis: str, told: str) -> None:
    if math.isnan(chance):
        return
    figure.add_shape(type="line", x0=0, x1=1, xref="paper", y0=chance, y1=chance, yref=axis,
                     line=_DOTTED)  # fmt: skip
    figure.add_annotation(x=1, xref="paper", xanchor="right", y=chance, yref=axis,
                          yanchor="bottom", text=told, showarrow=False)  # fmt: skip


def _by_epsilon(figure: go.Figure, epsilons: Sequence[float], **place: int) -> None:
    names = [epsilon_said(epsilon) for epsilon in epsilons]
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        range=[-0.4, len(names) - 0.6],
        gridcolor=GRID,
        zeroline=False,
    )
    figure.update_xaxes(title="less privacy: ε of the training →", **place)  # fmt: skip


def _below(figure: go.Figure) -> None:
    figure.update_layout(legend=BELOW,
                         margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)  # fmt: skip
