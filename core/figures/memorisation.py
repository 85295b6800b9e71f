"""What models keep of planted texts, and what an audit shows of ε: computes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from core.figures.style import BASELINE, BELOW, GRID, LEAKED, MISSED, error_bars, style
from core.results import Score
from core.studies.memorisation_summary import Audited, Law, Memorisation, Planted

__all__ = ["ACCESS", "MODELS", "audit_figure", "growth_figure", "insertions_figure",
           "target_said", "times_said", "verdict"]  # fmt: skip

MODELS = {"lstm": "LSTM", "transformer": "Transformer"}
"""What the models are called where people read it."""

ACCESS = {"texts": "who sees the model alone", "gradients": "who sees every step of training"}
"""Auditors."""

_LOOKS = {"lstm": ("#0072B2", "circle", "solid"), "transformer": ("#E69F00", "square", "dash")}
_SEEN = {"texts": ("#0072B2", "circle"), "gradients": ("#D55E00", "square")}
_APART = 0.06
"""Of models, so that their intervals stand side by side."""

_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_SHADE = "rgba(128,128,128,0.14)"


def verdict(found: Memorisation) -> str:
    """Return from how many insertions on a secret stands out, and in which model."""
    seen = [point for point in found.planted if point.stands_out]
    if not seen:
        most = found.planted[-1]
        return f"No planted secret stands out of those that were planted nowhere ({_n_said(most)})"
    fewest = min(seen, key=lambda point: (point.insertions, -point.exposure.value))
    told = f"Planted {times_said(fewest.insertions)}, a secret stands out in the"
    return f"{told} {MODELS[fewest.model]} ({_n_said(fewest)})"


def _n_said(point: Planted) -> str:
    n = point.exposure.n
    return f"mean of {n} canaries" if n != 1 else "one canary"


def times_said(n: int) -> str:
    """Return how often in words.

    Examples
    --------
    >>> times_said(1), times_said(16)
    ('once', '16 times')
    """
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{n} times")


def growth_figure(
    exposures: Sequence[Score], controls: Sequence[float], law: Law, n_epochs: int
) -> go.Figure:
    """Return the exposure of a canary over the epochs, above those that were planted nowhere.

    Parameters
    ----------
    exposures : sequence of Score
        After each epoch so far.
    controls : sequence of float
        After each epoch, the mean of canaries that were planted nowhere; empty if not known yet.
    n_epochs : int
        Passes that there will be.
    """
    figure = go.Figure()
    epochs = list(range(1, len(exposures) + 1))
    figure.add_scatter(
        x=epochs, y=[score.value for score in exposures], mode="lines+markers",
        name="your canary", line={"color": LEAKED, "width": 2.5},
        marker={"symbol": "circle", "size": 9, "color": LEAKED},
        error_y=error_bars(exposures, LEAKED),
        hovertemplate="epoch %{x}: %{y:.1f} bits<extra>your canary</extra>",
    )  # fmt: skip
    if controls:
        figure.add_scatter(
            x=epochs, y=list(controls), mode="lines+markers", name="planted nowhere, mean",
            line={"color": MISSED, "width": 1.5, "dash": "dot"},
            marker={"symbol": "circle-open", "size": 8, "color": MISSED},
            hovertemplate="epoch %{x}: %{y:.2f} bits<extra>planted nowhere</extra>",
        )  # fmt: skip
    _law(figure, law)
    _finish(figure, "epoch", height=380)
    step = max(1, -(-n_epochs // 10))
    figure.update_xaxes(range=[0.5, n_epochs + 0.5], dtick=step, tick0=step)
    return figure


def insertions_figure(found: Memorisation) -> go.Figure:
    """Return the exposure over how often a canary was planted, a line a model."""
    figure = go.Figure()
    times = sorted({point.insertions for point in found.planted})
    models = list(dict.fromkeys(point.model for point in found.planted))
    for i, model in enumerate(models):
        points = [point for point in found.planted if point.model == model]
        colour, symbol, dash = _LOOKS[model]
        scores = [point.exposure for point in points]
        figure.add_scatter(
            x=[times.index(point.insertions) + _APART * i for point in points],
            y=[score.value for score in scores],
            mode="lines+markers", name=MODELS[model],
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 10, "color": colour},
            error_y=error_bars(scores, colour),
            customdata=[[point.insertions, point.exposure.said()] for point in points],
            hovertemplate="planted %{customdata[0]} times: %{customdata[1]} bits"
            f"<extra>{MODELS[model]}</extra>",
        )  # fmt: skip
    _law(figure, found.law)
    _finish(figure, "times planted", height=400)
    figure.update_xaxes(tickvals=list(range(len(times))), ticktext=list(map(str, times)),
                        range=[-0.3, len(times) - 0.7])  # fmt: skip
    return figure


def audit_figure(audited: Sequence[Audited]) -> go.Figure:
    """Return the lower bounds of ε beside the accountant's, by what the auditor sees."""
    figure = go.Figure()
    targets = sorted({each.target for each in audited})
    promised = [each for each in audited if each.accountant is not None]
    figure.add_scatter(
        x=[targets.index(each.target) for each in promised],
        y=[each.accountant for each in promised],
        mode="markers", name="ε of the accountant",
        marker={"symbol": "line-ew-open", "size": 48, "color": BASELINE, "line": {"width": 3}},
        hovertemplate="the accountant: %{y:.2f}<extra></extra>",
    )  # fmt: skip
    for access in _SEEN:  # all at the ε that they are of: their symbols tell them apart
        same = [each for each in audited if each.access == access]
        if same:
            _bounds(figure, same, [targets.index(each.target) for each in same])
    _finish(figure, "ε that the training was to keep to", height=400)
    names = [target_said(target) for target in targets]
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names,
                        range=[-0.5, len(names) - 0.5], showgrid=False)  # fmt: skip
    highest = max((*(max(each.bounds) for each in audited), *(e.accountant or 0 for e in promised)))
    # A bound of nothing is a whole mark, too.
    figure.update_yaxes(title="ε at least, as an audit shows →",
                        range=[-0.05 * highest - 0.05, 1.08 * highest + 0.1])  # fmt: skip
    return figure


def target_said(epsilon: float) -> str:
    """Return the ε that a training is to keep to as axes and tables have it.

    Examples
    --------
    >>> target_said(4.0), target_said(float("inf"))
    ('ε = 4', 'no promise')
    """
    return "no promise" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _bounds(figure: go.Figure, audited: Sequence[Audited], places: Sequence[float]) -> None:
    access = audited[0].access
    colour, symbol = _SEEN[access]
    figure.add_scatter(
        x=list(places), y=[each.median for each in audited], mode="markers",
        name=f"shown to {ACCESS[access]}",
        marker={"symbol": symbol, "size": 11, "color": colour},
        error_y={
            "type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 5,
            "array": [max(each.bounds) - each.median for each in audited],
            "arrayminus": [each.median - min(each.bounds) for each in audited],
        },
        customdata=[[len(each.bounds), min(each.bounds), max(each.bounds)] for each in audited],
        hovertemplate="median of %{customdata[0]} audits: %{y:.2f}<br>from %{customdata[1]:.2f} "
        f"to %{{customdata[2]:.2f}}<extra>{ACCESS[access]}</extra>",
    )  # fmt: skip


def _law(figure: go.Figure, law: Law) -> None:
    """Draw where canaries lie that were planted nowhere, and the most that there is."""
    figure.add_hrect(y0=0, y1=law.high, fillcolor=_SHADE, line_width=0, layer="below")
    figure.add_hline(y=law.mean, line=_DOTTED)
    _told(figure, law.high, "95 % of those planted nowhere", "top")
    _told(figure, law.mean, f"their mean, {law.mean:.2f}", "top")
    if law.most is not None:
        figure.add_hline(y=law.most, line=_DOTTED)
        _told(figure, law.most, f"the secret is the likeliest of all: {law.most:.1f} bits",
              "bottom", left=True)  # fmt: skip


def _told(figure: go.Figure, y: float, text: str, anchor: str, *, left: bool = False) -> None:
    side = "left" if left else "right"
    figure.add_annotation(x=0 if left else 1, xref="paper", xanchor=side, y=y, yanchor=anchor,
                          text=text, showarrow=False)  # fmt: skip


def _finish(figure: go.Figure, x: str, *, height: int) -> None:
    style(figure, height=height)
    figure.update_layout(legend=BELOW,
                         margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)  # fmt: skip
    figure.update_xaxes(title=f"{x} →", gridcolor=GRID, zeroline=False)
    figure.update_yaxes(title="exposure, bits →", gridcolor=GRID, zeroline=False,
                        rangemode="tozero")  # fmt: skip
