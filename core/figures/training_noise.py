"""What networks are worth that only see noise, and what pretraining wins back: computes nothing.

Ours filled, the paper's as hollow diamonds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from core.defences.registry import DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES
from core.figures.style import BASELINE, BELOW, GRID, error_bars, style
from core.registry import Look, looks_of
from core.results import Score
from core.studies.privacy_paper import ADAPTED, CONSTRAINED, MATCHED, NULL
from core.studies.training_points import Adapted, Constrained

__all__ = ["adapted_figure", "loss_figure", "utility_figure"]

_PAPER = "Qu et al. (2021), in the same colours"
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_PLAIN = Look("#8A8F96", "circle")
"""Fine-tuned under noise as it comes."""


_NEAR = 5.0
"""Marks of an axis that lie nearer would be written on each other."""


def utility_figure(points: Sequence[Constrained]) -> go.Figure:
    """Return the accuracy of a task and a network by η, a line for each thing that users send."""
    figure = go.Figure()
    noisy = [point for point in points if math.isfinite(point.eta)]
    arms = {(point.mechanism, point.releases): None for point in noisy}
    for mechanism, releases in arms:
        entry = DEFENCES[mechanism]
        own = [p for p in noisy if (p.mechanism, p.releases) == (mechanism, releases)]
        look = Look(entry.colour, entry.symbol)
        dash = "solid" if releases == 1 else "dash"
        name = f"{entry.title}, {f'{releases} releases' if releases > 1 else 'one release'}"
        _line(figure, name, look, [(p.eta, p.accuracy) for p in own], dash=dash)
        if (mechanism, 1) in arms and releases > 1:
            continue
        theirs = CONSTRAINED.get((own[0].task, own[0].reader, mechanism), {})
        _paper(figure, theirs, look.colour)
    _reference(figure, points)
    _finish(figure, [point.eta for point in noisy])
    return figure


def adapted_figure(points: Sequence[Adapted]) -> go.Figure:
    """Return the accuracy of a task and a mechanism by η, a line for each loss of pretraining."""
    figure = go.Figure()
    first = points[0]
    looks = looks_of(OBJECTIVES)
    plain = {point.eta: point.plain for point in points}
    _line(figure, "not pretrained under noise", _PLAIN, sorted(plain.items()), dash="dash")
    theirs = CONSTRAINED.get((first.task, "transformer", first.mechanism), {})
    _paper(figure, theirs, _PLAIN.colour)
    for name in (name for name in OBJECTIVES if name in {p.objective for p in points}):
        own = [(p.eta, p.accuracy) for p in points if p.objective == name]
        _line(figure, OBJECTIVES[name].title, looks[name], own)
        theirs = ADAPTED.get((first.task, first.mechanism, name), {})
        _paper(figure, theirs, looks[name].colour)
    _without(figure, first.null, first.their_null)
    _finish(figure, [point.eta for point in points])
    return figure


def loss_figure(points: Sequence[Adapted]) -> go.Figure:
    """Return the loss on held-out texts by tokens seen at one η, a line for each loss."""
    figure = go.Figure()
    looks = looks_of(OBJECTIVES)
    for point in points:
        look, title = looks[point.objective], OBJECTIVES[point.objective].title
        figure.add_scatter(
            x=[tokens for tokens, _ in point.losses], y=[loss for _, loss in point.losses],
            mode="lines+markers", name=title,
            line={"color": look.colour, "width": 2},
            marker={"symbol": look.symbol, "size": 8, "color": look.colour},
            hovertemplate="after %{x:,} tokens: %{y:.3f}" f"<extra>{title}</extra>",
        )  # fmt: skip
    _legend(figure, 380)
    figure.update_xaxes(title="tokens seen at this η →", gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="loss on held-out texts, nats →", gridcolor=GRID, zeroline=False)
    return figure


def _line(
    figure: go.Figure,
    name: str,
    look: Look,
    points: Sequence[tuple[float, Score]],
    dash: str = "solid",
) -> None:
    scores = [score for _, score in points]
    figure.add_scatter(
        x=[eta for eta, _ in points], y=[score.value for score in scores], mode="lines+markers",
        name=name, line={"color": look.colour, "width": 2, "dash": dash},
        marker={"symbol": look.symbol, "size": 9, "color": look.colour},
        error_y=error_bars(scores, look.colour),
        customdata=[[score.said()] for score in scores],
        hovertemplate="η %{x:g}: %{customdata[0]} %" f"<extra>{name}</extra>",
    )  # fmt: skip


def _paper(figure: go.Figure, theirs: dict[int, float], colour: str) -> None:
    """Draw the paper's figures at those η of ours that stand beside theirs."""
    if not theirs:
        return
    is_first = not any(trace.name == _PAPER for trace in figure.data)
    etas = [eta for eta, at in MATCHED.items() if at in theirs]
    figure.add_scatter(
        x=etas, y=[theirs[MATCHED[eta]] for eta in etas], mode="lines+markers", name=_PAPER,
        line={"color": colour, "width": 1, "dash": "dot"},
        marker={"symbol": "diamond-open", "size": 9, "color": colour},
        customdata=[[MATCHED[eta]] for eta in etas],
        hovertemplate="the paper, at its η %{customdata[0]}: %{y:.1f} %<extra></extra>",
        legendgroup=_PAPER, legendrank=2000, showlegend=is_first,
    )  # fmt: skip


def _reference(figure: go.Figure, points: Sequence[Constrained]) -> None:
    """Draw what the network reaches without noise, and what guessing does."""
    null = next((point for point in points if math.isinf(point.eta)), None)
    if null is not None:
        _without(figure, null.accuracy, NULL.get((null.task, null.reader)))
    elif points:
        _guess(figure, points[0].accuracy.chance)


def _without(figure: go.Figure, null: Score, theirs: float | None) -> None:
    if null.has_interval:
        figure.add_hrect(y0=null.ci95.low, y1=null.ci95.high, line_width=0, layer="below",
                         fillcolor="rgba(128,128,128,0.16)")  # fmt: skip
    figure.add_hline(y=null.value, line={"color": BASELINE, "width": 1.5})
    told = f"without noise {null.value:.1f}"
    told += "" if theirs is None else f" (the paper's {theirs:.1f})"
    _told(figure, null.value, told, "bottom")
    _guess(figure, null.chance)


def _guess(figure: go.Figure, chance: float) -> None:
    if math.isfinite(chance):
        figure.add_hline(y=chance, line=_DOTTED)
        # Much noise, at the left, brings points down to guessing: its name stands at the right.
        _told(figure, chance, f"guessing {chance:.0f}", "bottom", side="right")


def _told(figure: go.Figure, y: float, text: str, anchor: str, *, side: str = "left") -> None:
    figure.add_annotation(x=float(side == "right"), xref="paper", xanchor=side, y=y,
                          yanchor=anchor, text=text, showarrow=False)  # fmt: skip


def _finish(figure: go.Figure, etas: Sequence[float]) -> None:
    _legend(figure, 460)
    theirs = [eta for eta in MATCHED if min(abs(eta - own) for own in etas) > _NEAR]
    figure.update_xaxes(title="less noise: η →", gridcolor=GRID, zeroline=False,
                        tickvals=sorted({*theirs, *etas}))  # fmt: skip
    figure.update_yaxes(title="useful: accuracy, % →", gridcolor=GRID, zeroline=False)


def _legend(figure: go.Figure, height: int) -> None:
    style(figure, height=height)
    figure.update_layout(legend=BELOW,
                         margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)  # fmt: skip
