"""Figures of attribute inference: accuracy curves, label probabilities, confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.figures.style import (
    BASELINE,
    BELOW,
    DASHES,
    GRID,
    LEAKED,
    WRONG,
    error_bars,
    hover_line,
    style,
)
from leakscope.core.registry import marker_style
from leakscope.core.studies.attributes.curves import ALONG, Curve

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.experiment import Guess
    from leakscope.core.attacks.attributes.parts import LabelEvidence

_TOPIC, _REST, _GUESS = "#0072B2", "#E69F00", "#56B4E9"
_SHADES = (
    ("#FFFFFF", "rgb(244, 186, 140)", "rgb(232, 125, 45)"),
    ("#12161B", "rgb(86, 44, 13)", "rgb(160, 72, 0)"),
)
"""Colour scale from the page's background (light or dark) to the colour of leaks."""
_INK = ("#1B1F24", "#E8EBEE")
_FRAME = ("#0072B2", "#56B4E9")
_LETTERS = 14
_CONTROL = "shuffled labels"


def accuracy_figure(curves: Sequence[Curve], along: str, k: int) -> go.Figure:
    """Plot accuracy over a size, one line per attack, with intervals, control and guessing.

    Parameters
    ----------
    along : str
        One of ALONG.
    k : int
        The k of the curves' top-k accuracy.
    """
    figure = go.Figure()
    encoders = list(dict.fromkeys(c.encoder for c in curves if c.encoder))
    controls = [curve for curve in curves if curve.is_shuffled]
    for curve in curves:
        _add_curve(figure, curve, encoders, is_named=curve not in controls[1:])
    longest = max(curves, key=lambda curve: len(curve.sizes))
    figure.add_scatter(
        x=longest.sizes,
        y=[score.chance for score in longest.scores],
        name="guessing",
        mode="lines+markers",
        line={"color": BASELINE, "dash": "dot", "width": 2},
        marker={"symbol": "line-ew-open", "size": 9},
        hovertemplate="guessing: %{y:.1%}<extra></extra>",
    )
    style(figure, height=440)
    sizes = sorted({size for curve in curves for size in curve.sizes})
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 16, "b": 10})
    figure.update_xaxes(
        title=ALONG[along],
        type="log",
        tickvals=sizes,
        ticktext=[f"{n:,}" for n in sizes],
        gridcolor=GRID,
        zeroline=False,
        minor={"ticks": ""},
    )
    correct = "inferred correctly" if k == 1 else f"with the right label in the top {k}"
    figure.update_yaxes(title=f"texts {correct}", rangemode="tozero", tickformat=".0%")
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
    return figure


def _add_curve(figure: go.Figure, curve: Curve, encoders: Sequence[str], *, is_named: bool) -> None:
    """Add an attack's accuracy curve to a figure; all controls share one legend entry."""
    look = marker_style(ATTRIBUTE_ATTACKS, curve.attack)
    name = ATTRIBUTE_ATTACKS[curve.attack].title
    if len(encoders) > 1 and curve.encoder:
        name = f"{name}, {curve.encoder}"
    colour, symbol = (BASELINE, "x") if curve.is_shuffled else (look.colour, look.symbol)
    if curve.is_shuffled:
        name = f"{name}, {_CONTROL}"
    if curve.encoder in encoders[1:] and not curve.is_shuffled:
        symbol = f"{symbol}-open"  # the dash alone is hard to see
    dash = DASHES[encoders.index(curve.encoder) % 4] if curve.encoder else "longdash"
    figure.add_scatter(
        x=curve.sizes,
        y=[score.value for score in curve.scores],
        name=_CONTROL if curve.is_shuffled else name,
        legendgroup=_CONTROL if curve.is_shuffled else name,
        showlegend=is_named,
        mode="markers" if curve.is_shuffled else "lines+markers",
        line={"color": colour, "width": 2, "dash": dash},
        marker={"symbol": symbol, "size": 10},
        error_y=error_bars(curve.scores),
        customdata=[
            f"{score.in_percent().format()} %{hover_line(origin)}"
            for score, origin in zip(curve.scores, curve.origins, strict=True)
        ],
        hovertemplate=f"{name}: %{{customdata}}<extra></extra>",
    )


def guesses_figure(guesses: Sequence[Guess], truth: str = "") -> go.Figure:
    """Plot the probabilities of a text's likeliest labels; a dot marks the true one."""
    figure = go.Figure()
    others = WRONG if truth else _GUESS
    rows = list(range(len(guesses)))
    figure.add_bar(
        x=[guess.probability for guess in guesses],
        y=rows,
        orientation="h",
        marker={"color": [LEAKED if g.label == truth else others for g in guesses]},
        text=[f"{100 * guess.probability:.0f} %" for guess in guesses],
        textposition="outside",
        cliponaxis=False,
        hovertext=[f"{_safe(g.label)}: {g.probability:.1%}" for g in guesses],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    _style_label_rows(figure, [("● " if g.label == truth else "") + g.label for g in guesses])
    figure.update_xaxes(
        title="probability",
        range=[0, 1.12],
        tickvals=[0, 0.5, 1],
        ticktext=["0", "50 %", "100 %"],
        gridcolor=GRID,
        zeroline=False,
    )
    return figure


def reasons_figure(labels: Sequence[str], reasons: Sequence[LabelEvidence]) -> go.Figure:
    """Plot the log-odds contributions of topic and of the rest to each label, in nats."""
    figure = go.Figure()
    rows = list(range(len(labels)))
    for name, colour, shape, values in (
        ("topic", _TOPIC, "", [why.topic for why in reasons]),
        ("the rest", _REST, "/", [why.rest for why in reasons]),
    ):
        figure.add_bar(
            x=values,
            y=rows,
            orientation="h",
            name=name,
            marker={"color": colour, "pattern": {"shape": shape}},
            hovertemplate=f"{name}: %{{x:+.2f}} nats<extra></extra>",
        )
    _style_label_rows(figure, labels)
    legend = {"orientation": "h", "yanchor": "bottom", "y": 1, "x": 0}
    figure.update_layout(barmode="relative", legend=legend)
    figure.update_xaxes(title="evidence for the label →, nats", gridcolor=GRID)
    figure.update_xaxes(zeroline=True, zerolinecolor=BASELINE)
    return figure


def _style_label_rows(figure: go.Figure, labels: Sequence[str]) -> None:
    """Apply the shared style to a bar chart whose rows are labels."""
    style(figure, height=90 + 38 * len(labels))
    figure.update_layout(margin={"l": 0, "r": 8, "t": 28, "b": 10})
    _name_rows(figure, labels, tickfont={"size": 13})


def confusion_figure(
    labels: Sequence[str], shares: Sequence[Sequence[float]], *, is_dark: bool = False
) -> go.Figure:
    """Plot the confusion matrix: the share of each label's texts that get each predicted label.

    Parameters
    ----------
    labels : sequence of k str
    shares : sequence of k rows of k + 1 numbers
        From `leakscope.core.attacks.attributes.answers.Confusion`, in [0, 1]; the last column is
        any other label, and is omitted if empty.
    """
    has_others = any(row[-1] > 0 for row in shares)
    columns = [*labels, "any other"] if has_others else list(labels)
    shares = [row[: len(columns)] for row in shares]
    hovers = [
        [
            f"{_safe(true)} labelled as {_safe(answered)}: {share:.1%}"
            for answered, share in zip(columns, row, strict=True)
        ]
        for true, row in zip(labels, shares, strict=True)
    ]
    figure = go.Figure()
    figure.add_heatmap(
        x=list(range(len(columns))),
        y=list(range(len(labels))),
        z=[[100 * share for share in row] for row in shares],
        zmin=0,
        zmax=100,
        showscale=False,
        colorscale=[[i / 2, shade] for i, shade in enumerate(_SHADES[is_dark])],
        xgap=2,
        ygap=2,
        texttemplate="%{z:.0f}",
        textfont={"color": _INK[is_dark], "size": 12},
        hovertext=hovers,
        hovertemplate="%{hovertext}<extra></extra>",
    )
    line = {"color": _FRAME[is_dark], "width": 2}
    for i in range(len(labels)):
        box = {"x0": i - 0.47, "x1": i + 0.47, "y0": i - 0.47, "y1": i + 0.47}
        figure.add_shape(type="rect", line=line, **box)
    style(figure, height=160 + 34 * len(labels))
    figure.update_layout(margin={"t": 130, "b": 10, "r": 34, "l": 0}, plot_bgcolor=GRID)
    figure.update_xaxes(
        tickvals=list(range(len(columns))),
        ticktext=[_label(label) for label in columns],
        side="top",
        tickangle=-60,
        ticklabeloverflow="allow",
        showgrid=False,
        zeroline=False,
    )
    _name_rows(figure, labels)
    return figure


def _name_rows(figure: go.Figure, labels: Sequence[str], **more: Any) -> None:
    """Label the rows of a figure, from the top."""
    figure.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=[_label(label) for label in labels],
        range=[len(labels) - 0.5, -0.5],
        automargin=True,
        showgrid=False,
        zeroline=False,
        ticklabelstandoff=4,
        **more,
    )


def _label(name: str) -> str:
    """Return a label shortened and escaped for an axis."""
    return _safe(name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…")


def _safe(text: str) -> str:
    """Escape a text for Plotly, where < and & are markup and %{ a field."""
    return escape(text).replace("%", "&#37;")
