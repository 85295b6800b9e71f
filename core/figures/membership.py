"""Figures of membership inference: ROC curves, score distributions, advantage by word rarity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from leakscope.core.attacks.membership.score_distribution import RankShares, RocPoint, ScoreShares
from leakscope.core.figures.style import (
    BASELINE,
    BELOW,
    DASHES,
    GRID,
    LEAKED,
    MISSED,
    error_bars,
    style,
)
from leakscope.core.registry import Look
from leakscope.core.results import Score

_LEAST = 1e-3
"""Lowest true-positive rate on the logarithmic axis; the curve below it is not drawn."""

_TICKS = (0.0001, 0.001, 0.01, 0.1, 1.0)


def roc_figure(points: Sequence[RocPoint], *, has_curve: bool = True) -> go.Figure:
    """Plot ROC points: true-positive over false-positive rate, both axes logarithmic.

    Parameters
    ----------
    points : sequence of (float, Score)
        In order of increasing rate, each with its interval.
    has_curve : bool
        Whether to draw a line with a band; otherwise each is a point with its interval.
    """
    figure = go.Figure()
    rates = [rate for rate, _ in points]
    least = min([*rates, 0.01])
    start = 10 ** math.floor(math.log10(least) + 1e-9)
    figure.add_scatter(
        x=[start, 1],
        y=[start, 1],
        mode="lines",
        line={"color": BASELINE, "dash": "dot", "width": 1.5},
        name="chance",
        hoverinfo="skip",
    )
    if has_curve:
        _add_band(figure, points)
    _add_points(figure, points, has_curve=has_curve)
    style(figure, height=440)
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 12, "b": 10})
    axis = {
        "type": "log",
        "gridcolor": GRID,
        "zeroline": False,
        "tickvals": list(_TICKS),
        "ticktext": [f"{100 * t:g} %" for t in _TICKS],
    }
    figure.update_xaxes(title="false-positive rate →", **axis)
    figure.update_xaxes(range=[math.log10(start) - 0.03, 0.03])
    figure.update_yaxes(title="true-positive rate →", **axis)
    figure.update_yaxes(range=[math.log10(max(start, _LEAST)) - 0.03, 0.05])
    return figure


def _add_band(figure: go.Figure, points: Sequence[RocPoint]) -> None:
    """Add the intervals of a ROC curve to a figure as a band, clipped at the axis."""
    rates = [rate for rate, _ in points]
    for end, fill in (("high", None), ("low", "tonexty")):
        figure.add_scatter(
            x=rates,
            y=[max(getattr(score.ci95, end), _LEAST / 10) for _, score in points],
            mode="lines",
            line={"width": 0, "color": LEAKED},
            fill=fill,
            fillcolor="rgba(213,94,0,0.2)",
            name="95 % CI",
            showlegend=fill is not None,
            hoverinfo="skip",
        )


def _add_points(figure: go.Figure, points: Sequence[RocPoint], *, has_curve: bool) -> None:
    """Add the points of a ROC curve to a figure."""
    scores = [score for _, score in points]
    figure.add_scatter(
        x=[rate for rate, _ in points],
        y=[score.value if score.value > 0 else None for score in scores],
        error_y=None if has_curve else error_bars(scores, LEAKED, thickness=1.5, width=5),
        mode="lines+markers" if has_curve else "markers",
        line={"color": LEAKED, "width": 2.5},
        marker={"color": LEAKED, "size": 5 if has_curve else 11},
        name="attack",
        customdata=[
            [100 * r, 100 * s.value, 100 * s.ci95.low, 100 * s.ci95.high] for r, s in points
        ],
        hovertemplate="true-positive rate %{customdata[1]:.1f} % "
        "(95 % CI %{customdata[2]:.1f}–%{customdata[3]:.1f})"
        "<br>false-positive rate %{customdata[0]:.2g} %<extra></extra>",
    )


def score_figure(shares: ScoreShares, *, marked: float | None = None) -> go.Figure:
    """Plot histograms of the attack's scores for members and for non-members.

    Parameters
    ----------
    marked : float, optional
        A score to mark with a line.
    """
    edges = shares.edges
    centres, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0])
    figure = go.Figure()
    for values, name, look in _member_shares(shares):
        figure.add_bar(
            x=centres,
            y=values,
            name=name,
            width=width,
            marker={**look, "opacity": 0.6},
            hovertemplate=f"%{{y:.1f}} % of {name}, around %{{x:.3g}}<extra></extra>",
        )
    if marked is not None and not math.isnan(marked):
        at = min(max(marked, float(edges[0])), float(edges[-1]))
        figure.add_vline(x=at, line={"color": BASELINE, "width": 3, "dash": "dash"})
        figure.add_annotation(
            x=at,
            y=1.02,
            yref="paper",
            yanchor="bottom",
            xanchor="auto",
            text="selected",
            showarrow=False,
        )
    style(figure, height=320)
    margin = {"l": 0, "r": 8, "t": 26, "b": 10}
    figure.update_layout(barmode="overlay", legend=BELOW, margin=margin)
    figure.update_xaxes(title="attack score, higher for likely members →", gridcolor=GRID)
    figure.update_xaxes(zeroline=False)
    figure.update_yaxes(title="% of each group", gridcolor=GRID, zeroline=False)
    return figure


def rank_figure(shares: RankShares) -> go.Figure:
    """Plot the shares of members and non-members by percentile range of non-member scores."""
    bounds = [f"{bound:.0f}" for bound in shares.bounds]
    ranges = [f"{low}–{high} %" for low, high in pairwise(bounds)]
    figure = go.Figure()
    for values, name, look in _member_shares(shares):
        figure.add_bar(
            x=ranges,
            y=values,
            name=name,
            marker=look,
            hovertemplate=f"%{{y:.1f}} % of {name} score above %{{x}} of non-members"
            "<extra></extra>",
        )
    style(figure, height=320)
    figure.update_layout(barmode="group", legend=BELOW, margin={"l": 0, "r": 8, "t": 12, "b": 10})
    figure.update_xaxes(title="percentile among non-members →", type="category")
    figure.update_yaxes(title="% of each group", gridcolor=GRID, zeroline=False)
    return figure


def _member_shares(
    shares: ScoreShares | RankShares,
) -> tuple[tuple[NDArray[np.float64], str, dict[str, Any]], ...]:
    """Return two (shares, name, style) tuples: for members and for non-members."""
    return (
        (shares.members, "members", {"color": LEAKED, "pattern": {"shape": ""}}),
        (shares.outsiders, "non-members", {"color": MISSED, "pattern": {"shape": "/"}}),
    )


def decile_figure(lines: Sequence[tuple[str, Look, Sequence[tuple[int, Score]]]]) -> go.Figure:
    """Plot membership advantage by decile of word frequency, one line per attack.

    Parameters
    ----------
    lines : sequence of (title, look, points)
        Points are a decile, 1 the most frequent, and the advantage there, in [-1, 1].
    """
    figure = go.Figure()
    figure.add_hline(y=0, line={"color": BASELINE, "dash": "dot", "width": 1.5})
    drawn: Counter[str] = Counter()
    for title, look, points in lines:
        # Settings of one attack share its look and differ in their dash.
        dash = DASHES[drawn[look.colour] % len(DASHES)]
        drawn[look.colour] += 1
        figure.add_scatter(
            x=[decile for decile, _ in points],
            y=[score.value for _, score in points],
            error_y=error_bars([score for _, score in points], look.colour),
            mode="lines+markers",
            name=title,
            line={"color": look.colour, "width": 2, "dash": dash},
            marker={"color": look.colour, "symbol": look.symbol, "size": 9},
            hovertemplate=f"{title}<br>decile %{{x}}: advantage %{{y:.2f}}<extra></extra>",
        )
    style(figure, height=380)
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 20, "b": 10}, showlegend=True)
    title = "decile of word frequency, 10 the rarest →"
    figure.update_xaxes(title=title, dtick=1, gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="advantage (guessing: 0)", gridcolor=GRID, zeroline=False)
    return figure
