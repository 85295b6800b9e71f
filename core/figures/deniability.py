"""Figures of deniability: curves over η, histograms over the vocabulary, token geometry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from leakscope.core.defences.deniability.geometry import Geometry
from leakscope.core.figures.style import BASELINE, BELOW, GRID, LEAKED, MISSED, style
from leakscope.core.results.rows import Row
from leakscope.core.studies.deniability.replacements import CLASSES, describe_setting
from leakscope.core.studies.deniability.study import rows_of_table

_N_W, _S_W = LEAKED, "#0072B2"


def token_curves(
    etas: NDArray[np.float64],
    shares: NDArray[np.float64],
    tokens: Sequence[str],
    vocabulary: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    eta: float,
) -> go.Figure:
    """Return a figure of how often each token of a sentence stays unchanged, over η.

    Parameters
    ----------
    etas : float64 array (G,)
        Ascending.
    shares : float64 array (T, G)
        Per cent of the draws that return the token.
    vocabulary : pair of float64 arrays, or None
        η and the vocabulary's mean in per cent; None omits it.
    """
    figure = go.Figure()
    _add_tokens(figure, etas, shares, tokens)
    figure.add_scatter(
        x=etas,
        y=shares.mean(0),
        mode="lines",
        line={"color": _N_W, "width": 4},
        name="this sentence",
        hovertemplate="sentence: %{y:.0f} % at η = %{x:.0f}<extra></extra>",
    )
    if vocabulary is not None:
        figure.add_scatter(
            x=vocabulary[0],
            y=vocabulary[1],
            mode="lines",
            line={"color": BASELINE, "width": 2, "dash": "dot"},
            name="all tokens of the encoder",
            hovertemplate="vocabulary: %{y:.0f} % at η = %{x:.0f}<extra></extra>",
        )
    _mark_eta(figure, eta)
    _style(figure, 320, "Unchanged tokens", "per cent of draws")
    figure.update_yaxes(range=[-2, 102])
    _eta_axis(figure, etas)
    return figure


def _add_tokens(
    figure: go.Figure,
    etas: NDArray[np.float64],
    shares: NDArray[np.float64],
    tokens: Sequence[str],
) -> None:
    """Add one thin curve per token to a figure: how often it stays unchanged, over η."""
    for i, (token, row) in enumerate(zip(tokens, shares, strict=True)):
        figure.add_scatter(
            x=etas,
            y=row,
            mode="lines",
            line={"color": "rgba(213,94,0,0.35)", "width": 1.5},
            name="each token",
            legendgroup="tokens",
            showlegend=i == 0,
            hovertemplate=f"{_safe(token)}: %{{y:.0f}} % at η = %{{x:.0f}}<extra></extra>",
        )


def outcome_histograms(
    n_w: NDArray[np.uint16], s_w: NDArray[np.uint16], n_draws: int, eta: float, n_bins: int = 40
) -> go.Figure:
    """Return a figure of N_w and S_w histograms over all tokens at one η (Qu et al. 2021).

    Parameters
    ----------
    n_w, s_w : array (W,)
        Values at that η.
    """
    edges = np.linspace(0, n_draws, n_bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    figure = go.Figure()
    for values, name, colour, pattern in (
        (n_w, "N_w: draws that return the token", _N_W, ""),
        (s_w, "S_w: different tokens returned", _S_W, "/"),
    ):
        counts, _ = np.histogram(values, edges)
        figure.add_bar(
            x=centres,
            y=counts / len(values) * 100,
            name=name,
            width=n_draws / n_bins,
            marker={"color": colour, "opacity": 0.6, "pattern": {"shape": pattern}},
            hovertemplate="%{y:.1f} % of tokens, around %{x:.0f}<extra></extra>",
        )
    figure.update_layout(barmode="overlay")
    _style(figure, 300, f"All tokens of the encoder at η = {eta:g}", "per cent of tokens")
    figure.update_xaxes(title=f"of {n_draws:,} draws", range=[0, n_draws])
    return figure


def geometry_figure(geometry: Geometry, eta: float) -> go.Figure:
    """Plot the distance to the k-th neighbour and the noise at η (Qu et al. 2021, Fig. 3)."""
    noise = geometry.dimension / eta
    figure = go.Figure()
    figure.add_scatter(
        x=geometry.neighbours,
        y=geometry.mean_distance,
        error_y={"type": "data", "array": geometry.sd_distance, "thickness": 1, "width": 3},
        mode="lines+markers",
        line={"color": "#0072B2", "width": 2},
        marker={"size": 8},
        name="k-th nearest token (± sd over tokens)",
        hovertemplate="k = %{x:,}: %{y:.2f}<extra></extra>",
    )
    figure.add_scatter(
        x=[geometry.neighbours[0], geometry.neighbours[-1]],
        y=[noise, noise],
        mode="lines",
        line={"color": _N_W, "width": 3, "dash": "dash"},
        name=f"mean length of the noise: {noise:.1f}",
        hovertemplate=f"noise: {noise:.2f}<extra></extra>",
    )
    _style(figure, 320, "Length of the noise and distances between tokens", "distance")
    figure.update_xaxes(title="k-th nearest token", type="log", dtick=1)
    figure.update_yaxes(rangemode="tozero")
    return figure


def _mark_eta(figure: go.Figure, eta: float) -> None:
    """Add a vertical line at the chosen η to a figure."""
    figure.add_vline(x=eta, line={"color": GRID.replace("0.25", "0.9"), "width": 2, "dash": "dash"})
    figure.add_annotation(
        x=np.log10(eta),
        y=1.02,
        yref="paper",
        text=f"η = {eta:g}",
        showarrow=False,
        yanchor="bottom",
        xanchor="auto",
    )


def _eta_axis(figure: go.Figure, etas: NDArray[np.float64]) -> None:
    """Give a figure a logarithmic η axis with fixed ticks."""
    ticks = [t for t in (15, 20, 30, 45, 60, 75, 100, 150, 200, 300, 400, 600) if t >= etas[0]]
    figure.update_xaxes(
        title="η: less noise to the right",
        type="log",
        range=[np.log10(etas[0]), np.log10(etas[-1])],
        tickvals=[t for t in ticks if t <= etas[-1]],
    )


def _style(figure: go.Figure, height: int, title: str, axis: str) -> None:
    """Apply the shared style to a figure, with a title and a y-axis title."""
    style(figure, height=height + 60)
    figure.update_layout(
        title={"text": f"<b>{title}</b>", "font": {"size": 15}, "x": 0, "y": 1, "yanchor": "top"},
        legend=BELOW,
        margin={"l": 0, "r": 8, "t": 58, "b": 10},
    )
    figure.update_yaxes(title=axis, gridcolor=GRID, zeroline=False)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)


def _safe(text: str) -> str:
    """Escape a token for a hover label, where < and & are markup and %{ a field."""
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("%", "&#37;")):
        text = text.replace(mark, name)
    return text


_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")


def histogram_panels(rows: Sequence[Row]) -> go.Figure:
    """Return a figure with N_w and S_w histograms from result rows, one panel per η."""
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
    """Add a histogram of token shares to one panel of a figure."""
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
    """Return a figure of result rows' mean distance to the k-th neighbour, and of the noise."""
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


_COLOURS = (LEAKED, "#E69F00", "#F0E442", "#56B4E9", BASELINE)
"""Colours from the token itself to unrelated replacements."""
_PATTERNS = ("", "/", ".", "x", "-")
_LEAST = 6.0
"""Per cent below which a bar segment is too narrow for its number."""
_ROW = 26


def replacements_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot what replaces tokens: a stacked bar of classes per mechanism and strength."""
    rows = [row for row in rows if not row.error]
    places = [" at ".join(describe_setting(row)) for row in rows]
    figure = go.Figure()
    for i, (name, title) in enumerate(CLASSES.items()):
        scores = [row.scores[name] for row in rows]
        figure.add_bar(
            x=[score.value for score in scores],
            y=places,
            name=title,
            orientation="h",
            marker={
                "color": _COLOURS[i],
                "pattern": {"shape": _PATTERNS[i], "fillmode": "overlay", "fgopacity": 0.35},
            },
            text=[f"{s.value:.0f}" if s.value >= _LEAST else "" for s in scores],
            textposition="inside",
            insidetextanchor="middle",
            insidetextfont={"color": "#111111"},
            textangle=0,
            customdata=[score.format() for score in scores],
            hovertemplate=f"%{{y}}<br>{title}: %{{customdata}} %<extra></extra>",
        )
    style(figure, height=110 + _ROW * len(rows))
    figure.update_layout(
        barmode="stack", legend={**BELOW, "traceorder": "normal"}, bargap=0.2, margin={"b": 90}
    )
    figure.update_xaxes(title="per cent of the tokens", range=[0, 100])
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure
