"""Figures of the deniability study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leakscope.core.figures.style import LEAKED, MISSED
from leakscope.core.results.rows import Row
from leakscope.core.studies.deniability.tables import rows_of_table

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")


def histogram_panels(rows: Sequence[Row]) -> go.Figure:
    """Plot histograms of N_w and S_w, one panel per η (Qu et al. 2021, Fig. 4)."""
    counts = rows_of_table(rows, "counts")
    figure = make_subplots(
        rows=2,
        cols=max(1, len(counts)),
        shared_xaxes=True,
        horizontal_spacing=0.01,
        vertical_spacing=0.08,
        column_titles=[f"η {row['eta']:g}" for row in counts],
        row_titles=["N_w", "S_w"],
    )
    for column, row in enumerate(counts, 1):
        _add_histogram(figure, row, "histogram_n_w", LEAKED, "", place=(1, column))
        _add_histogram(figure, row, "histogram_s_w", MISSED, "/", place=(2, column))
    if counts:
        n_draws, n_tokens = counts[0]["n_draws"], counts[0]["n_vocabulary"]
        figure.update_xaxes(tickvals=[n_draws / 2], range=[0, n_draws])
        figure.update_layout(
            title="How often a token stays unchanged (N_w), and how many replace it (S_w)"
            f"<br><sup>{n_draws:,} draws, {n_tokens:,} tokens of {counts[0]['encoder']}, "
            "each panel with its own scale</sup>"
        )
    figure.update_yaxes(showticklabels=False, rangemode="tozero")
    figure.update_yaxes(title="tokens", col=1)
    figure.update_layout(template="plotly_white", margin={"l": 60, "r": 30, "t": 90, "b": 40})
    return figure


def _add_histogram(
    figure: go.Figure, row: Row, counts: str, colour: str, pattern: str, *, place: tuple[int, int]
) -> None:
    """Add a histogram of token shares to a panel."""
    n_bins = len(row[counts])
    edges = np.linspace(0, row["n_draws"], n_bins + 1)
    figure.add_bar(
        x=(edges[1:] + edges[:-1]) / 2,
        y=np.array(row[counts]) / row["n_vocabulary"] * 100,
        width=np.diff(edges),
        marker={"color": colour, "pattern": {"shape": pattern}, "line": {"width": 0}},
        showlegend=False,
        row=place[0],
        col=place[1],
    )


def geometry_panel(rows: Sequence[Row]) -> go.Figure:
    """Plot the mean distance to the k-th neighbour and the noise at each η (their Fig. 3)."""
    figure = go.Figure()
    for row in rows_of_table(rows, "distances"):
        figure.add_scatter(
            x=row["neighbours"],
            y=row["mean_distance"],
            mode="lines+markers",
            line={"color": "#0072B2", "width": 2},
            showlegend=False,
        )
        for eta, dash in zip(row["etas"], _DASHES, strict=False):
            noise = row["dimension"] / eta
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
        title="Mean distance from a token to its k-th nearest token, and mean length of the noise",
        xaxis={"title": "k", "type": "log", "dtick": 1},
        yaxis={"title": "Euclidean distance", "rangemode": "tozero"},
        template="plotly_white",
        margin={"l": 60, "r": 90, "t": 70, "b": 60},
    )
    return figure
