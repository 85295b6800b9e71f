"""Figures of networks trained under noise: accuracy by η, and the gain from pretraining.

Our points are filled; those of the paper are hollow diamonds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.figures.style import BASELINE, BELOW, GRID, error_bars, style
from leakscope.core.registry import Look, marker_styles
from leakscope.core.results import Score
from leakscope.core.studies.training.points import Adapted, Constrained
from leakscope.core.studies.training.privacy_paper import ADAPTED, CONSTRAINED, MATCHED, NULL

_PAPER = "Qu et al. (2021), in the same colours"
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_PLAIN = Look("#8A8F96", "circle")
"""Style of models fine-tuned under noise without pretraining."""


_NEAR = 5.0
"""Minimum distance between axis ticks, so that their labels do not overlap."""


def utility_figure(points: Sequence[Constrained]) -> go.Figure:
    """Plot a task's accuracy by η, one line per mechanism and number of releases."""
    figure = go.Figure()
    noisy = [point for point in points if math.isfinite(point.eta)]
    arms = {(point.mechanism, point.releases): None for point in noisy}
    for mechanism, releases in arms:
        entry = DEFENCES[mechanism]
        own = [p for p in noisy if (p.mechanism, p.releases) == (mechanism, releases)]
        look = Look(entry.colour, entry.symbol)
        dash = "solid" if releases == 1 else "dash"
        name = f"{entry.title}, {f'{releases} releases' if releases > 1 else 'one release'}"
        _add_line(figure, name, look, [(p.eta, p.accuracy) for p in own], dash=dash)
        if (mechanism, 1) in arms and releases > 1:
            continue
        theirs = CONSTRAINED.get((own[0].task, own[0].reader, mechanism), {})
        _add_paper(figure, theirs, look.colour)
    _draw_reference(figure, points)
    _style_axes(figure, [point.eta for point in noisy])
    return figure


def adapted_figure(points: Sequence[Adapted]) -> go.Figure:
    """Plot a task's accuracy by η, one line per pretraining objective."""
    figure = go.Figure()
    first = points[0]
    looks = marker_styles(OBJECTIVES)
    plain = {point.eta: point.plain for point in points}
    _add_line(figure, "not pretrained under noise", _PLAIN, sorted(plain.items()), dash="dash")
    theirs = CONSTRAINED.get((first.task, "transformer", first.mechanism), {})
    _add_paper(figure, theirs, _PLAIN.colour)
    for name in (name for name in OBJECTIVES if name in {p.objective for p in points}):
        own = [(p.eta, p.accuracy) for p in points if p.objective == name]
        _add_line(figure, OBJECTIVES[name].title, looks[name], own)
        theirs = ADAPTED.get((first.task, first.mechanism, name), {})
        _add_paper(figure, theirs, looks[name].colour)
    _draw_without_noise(figure, first.null, first.their_null)
    _style_axes(figure, [point.eta for point in points])
    return figure


def loss_figure(points: Sequence[Adapted]) -> go.Figure:
    """Plot the held-out loss by tokens seen at one η, one line per objective."""
    figure = go.Figure()
    looks = marker_styles(OBJECTIVES)
    for point in points:
        look, title = looks[point.objective], OBJECTIVES[point.objective].title
        figure.add_scatter(
            x=[tokens for tokens, _ in point.losses],
            y=[loss for _, loss in point.losses],
            mode="lines+markers",
            name=title,
            line={"color": look.colour, "width": 2},
            marker={"symbol": look.symbol, "size": 8, "color": look.colour},
            hovertemplate=f"after %{{x:,}} tokens: %{{y:.3f}}<extra>{title}</extra>",
        )
    _legend_below(figure, 380)
    figure.update_xaxes(title="tokens seen at this η →", gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="loss on held-out texts, nats →", gridcolor=GRID, zeroline=False)
    return figure


def _add_line(
    figure: go.Figure,
    name: str,
    look: Look,
    points: Sequence[tuple[float, Score]],
    dash: str = "solid",
) -> None:
    """Add a line of scores over η."""
    scores = [score for _, score in points]
    figure.add_scatter(
        x=[eta for eta, _ in points],
        y=[score.value for score in scores],
        mode="lines+markers",
        name=name,
        line={"color": look.colour, "width": 2, "dash": dash},
        marker={"symbol": look.symbol, "size": 9, "color": look.colour},
        error_y=error_bars(scores, look.colour),
        customdata=[[score.format()] for score in scores],
        hovertemplate=f"η %{{x:g}}: %{{customdata[0]}} %<extra>{name}</extra>",
    )


def _add_paper(figure: go.Figure, theirs: dict[int, float], colour: str) -> None:
    """Add the paper's results at the η of ours that match theirs."""
    if not theirs:
        return
    is_first = not any(trace.name == _PAPER for trace in figure.data)
    etas = [eta for eta, at in MATCHED.items() if at in theirs]
    figure.add_scatter(
        x=etas,
        y=[theirs[MATCHED[eta]] for eta in etas],
        mode="lines+markers",
        name=_PAPER,
        line={"color": colour, "width": 1, "dash": "dot"},
        marker={"symbol": "diamond-open", "size": 9, "color": colour},
        customdata=[[MATCHED[eta]] for eta in etas],
        hovertemplate="paper, at its η %{customdata[0]}: %{y:.1f} %<extra></extra>",
        legendgroup=_PAPER,
        legendrank=2000,
        showlegend=is_first,
    )


def _draw_reference(figure: go.Figure, points: Sequence[Constrained]) -> None:
    """Draw the accuracy without noise, and chance level."""
    null = next((point for point in points if math.isinf(point.eta)), None)
    if null is not None:
        _draw_without_noise(figure, null.accuracy, NULL.get((null.task, null.reader)))
    elif points:
        _draw_chance(figure, points[0].accuracy.chance)


def _draw_without_noise(figure: go.Figure, null: Score, theirs: float | None) -> None:
    """Draw the accuracy without noise with its interval, and chance level."""
    if null.has_interval:
        figure.add_hrect(
            y0=null.ci95.low,
            y1=null.ci95.high,
            line_width=0,
            layer="below",
            fillcolor="rgba(128,128,128,0.16)",
        )
    figure.add_hline(y=null.value, line={"color": BASELINE, "width": 1.5})
    told = f"without noise {null.value:.1f}"
    told += "" if theirs is None else f" (paper: {theirs:.1f})"
    _annotate(figure, null.value, told, "bottom")
    _draw_chance(figure, null.chance)


def _draw_chance(figure: go.Figure, chance: float) -> None:
    """Draw chance level."""
    if math.isfinite(chance):
        figure.add_hline(y=chance, line=_DOTTED)
        # With much noise, at the left, points fall to guessing, so its label is at the right.
        _annotate(figure, chance, f"guessing {chance:.0f}", "bottom", side="right")


def _annotate(figure: go.Figure, y: float, text: str, anchor: str, *, side: str = "left") -> None:
    """Annotate a horizontal line."""
    figure.add_annotation(
        x=float(side == "right"),
        xref="paper",
        xanchor=side,
        y=y,
        yanchor=anchor,
        text=text,
        showarrow=False,
    )


def _style_axes(figure: go.Figure, etas: Sequence[float]) -> None:
    """Style a figure over η."""
    _legend_below(figure, 460)
    theirs = [eta for eta in MATCHED if min(abs(eta - own) for own in etas) > _NEAR]
    figure.update_xaxes(
        title="η: less noise →", gridcolor=GRID, zeroline=False, tickvals=sorted({*theirs, *etas})
    )
    figure.update_yaxes(title="utility: accuracy, % →", gridcolor=GRID, zeroline=False)


def _legend_below(figure: go.Figure, height: int) -> None:
    """Apply the shared style with the legend below."""
    style(figure, height=height)
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)
