"""The figures of the deniability study: compute nothing, draw what they are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.defences.deniability.geometry import Geometry
from core.defences.deniability.vocabulary import VocabularyDeniability
from core.figures.style import LEAKED, MISSED

__all__ = ["geometry_panel", "histogram_panels"]

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")


def histogram_panels(found: VocabularyDeniability, etas: Sequence[float]) -> go.Figure:
    """Return the histograms of N_w and S_w, a panel an η (Qu et al. 2021, Fig. 4)."""
    figure = make_subplots(
        rows=2, cols=len(etas), shared_xaxes=True, horizontal_spacing=0.01,
        vertical_spacing=0.08, column_titles=[f"η {eta:g}" for eta in etas],
        row_titles=["N_w", "S_w"],
    )  # fmt: skip
    edges = np.linspace(0, found.n_draws, 26)
    for column, eta in enumerate(etas, 1):
        for row, (values, colour, pattern) in enumerate(
            ((found.n_w, LEAKED, ""), (found.s_w, MISSED, "/")), 1
        ):
            counts, _ = np.histogram(values[:, found.at(eta)], edges)
            figure.add_bar(
                x=(edges[1:] + edges[:-1]) / 2,
                y=counts / len(values) * 100,
                width=np.diff(edges),
                marker={"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
                showlegend=False,
                row=row,
                col=column,
            )
    figure.update_xaxes(tickvals=[found.n_draws / 2], range=[0, found.n_draws])
    figure.update_yaxes(showticklabels=False, rangemode="tozero")
    figure.update_yaxes(title="tokens", col=1)
    figure.update_layout(
        title="How often a token comes back (N_w), and into how many it turns (S_w)"
        f"<br><sup>of {found.n_draws:,} draws, {len(found.tokens):,} tokens of {found.encoder}, "
        "each panel on a scale of its own</sup>",
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 90, "b": 40},
    )
    return figure


def geometry_panel(geometry: Geometry, etas: Sequence[float]) -> go.Figure:
    """Return mean distances to the k-th neighbour and the noise at each η (their Fig. 3)."""
    figure = go.Figure()
    figure.add_scatter(
        x=geometry.neighbours,
        y=geometry.mean_distance,
        mode="lines+markers",
        line={"color": "#0072B2", "width": 2},
        showlegend=False,
    )
    for eta, dash in zip(etas, _DASHES, strict=False):
        noise = geometry.dimension / eta
        figure.add_hline(
            y=noise,
            line={"color": LEAKED, "dash": dash, "width": 1.5},
            annotation={
                "text": f"η {eta:g}: {noise:.1f}",
                "xanchor": "left",
                "yanchor": "middle",
                "x": 1.01,
            },
        )
    figure.update_layout(
        title="Mean distance from a token to its k-th nearest, and the mean length of the noise",
        xaxis={"title": "k", "type": "log", "dtick": 1},
        yaxis={"title": "Euclidean distance", "rangemode": "tozero"},
        template="plotly_white",
        margin={"l": 60, "r": 90, "t": 70, "b": 60},
    )
    return figure
