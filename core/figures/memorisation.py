"""Figures of memorisation: exposure of canaries, and audited lower bounds of ε."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.figures.style import (
    BASELINE,
    BELOW,
    DOTTED,
    GRID,
    LEAKED,
    MISSED,
    error_bars,
    style,
)
from leakscope.core.results import Interval, Score
from leakscope.core.studies.memorisation.summary import (
    ChanceExposure,
    Memorisation,
    ModelAudit,
    Planted,
)

MODELS = {"lstm": "LSTM", "transformer": "Transformer"}
"""Readable names of the models."""

ACCESS = {"texts": "the final model", "gradients": "every training step"}
"""What the auditor sees, by kind of access."""

_LOOKS = {"lstm": ("#0072B2", "circle", "solid"), "transformer": ("#E69F00", "square", "dash")}
_SEEN = {"texts": ("#0072B2", "circle"), "gradients": ("#D55E00", "square")}
_APART = 0.06
"""Horizontal offset between models, so that their intervals do not overlap."""

_SHADE = "rgba(128,128,128,0.14)"


def memorisation_headline(found: Memorisation) -> str:
    """Return the headline on the fewest insertions at which a model memorises a secret."""
    fewest = fewest_memorised(found)
    n = (fewest or found.planted[-1]).exposure.n
    secrets = f"mean of {n} secrets" if n != 1 else "one secret"
    if fewest is None:
        return f"No planted secret was memorised significantly more than by chance ({secrets})"
    return (
        f"A small language model ({MODELS[fewest.model]}) memorises a secret better than chance if "
        f"it occurs {describe_times(fewest.insertions)} in training ({secrets})"
    )


def fewest_memorised(found: Memorisation) -> Planted | None:
    """Return the point with the fewest insertions and exposure above chance; None for none."""
    seen = [point for point in found.planted if point.is_above_chance]
    return min(seen, key=lambda point: (point.insertions, -point.exposure.value), default=None)


def describe_times(n: int) -> str:
    """Format how often something occurs, in words: "once", "16 times".

    Examples
    --------
    >>> describe_times(1), describe_times(16)
    ('once', '16 times')
    """
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{n} times")


def growth_figure(
    exposures: Sequence[Score], controls: Sequence[float], law: ChanceExposure, n_epochs: int
) -> go.Figure:
    """Plot a canary's exposure over the epochs, beside canaries never planted (control).

    Parameters
    ----------
    exposures : sequence of Score
        After each epoch so far.
    controls : sequence of float
        After each epoch, the mean of canaries that were never planted; empty if not known yet.
    n_epochs : int
        The number of epochs in all.
    """
    figure = go.Figure()
    epochs = list(range(1, len(exposures) + 1))
    figure.add_scatter(
        x=epochs,
        y=[score.value for score in exposures],
        mode="lines+markers",
        name="your canary",
        line={"color": LEAKED, "width": 2.5},
        marker={"symbol": "circle", "size": 9, "color": LEAKED},
        error_y=error_bars(exposures, LEAKED),
        hovertemplate="epoch %{x}: %{y:.1f} bits<extra>your canary</extra>",
    )
    if controls:
        figure.add_scatter(
            x=epochs,
            y=list(controls),
            mode="lines+markers",
            name="never planted, mean",
            line={"color": MISSED, "width": 1.5, "dash": "dot"},
            marker={"symbol": "circle-open", "size": 8, "color": MISSED},
            hovertemplate="epoch %{x}: %{y:.2f} bits<extra>never planted</extra>",
        )
    _draw_null_law(figure, law)
    _style_axes(figure, "epoch", height=380)
    step = max(1, -(-n_epochs // 10))
    figure.update_xaxes(range=[0.5, n_epochs + 0.5], dtick=step, tick0=step)
    return figure


def insertions_figure(found: Memorisation) -> go.Figure:
    """Plot exposure over the number of insertions, one line per model."""
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
            mode="lines+markers",
            name=MODELS[model],
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 10, "color": colour},
            error_y=error_bars(scores, colour),
            customdata=[[point.insertions, point.exposure.format()] for point in points],
            hovertemplate="planted %{customdata[0]} times: %{customdata[1]} bits"
            f"<extra>{MODELS[model]}</extra>",
        )
    _draw_null_law(figure, found.law)
    _style_axes(figure, "times planted", height=400)
    figure.update_xaxes(
        tickvals=list(range(len(times))),
        ticktext=list(map(str, times)),
        range=[-0.3, len(times) - 0.7],
    )
    return figure


def audit_figure(audited: Sequence[ModelAudit]) -> go.Figure:
    """Plot audited lower bounds of ε beside the accountant's, by the auditor's access."""
    figure = go.Figure()
    targets = sorted({each.target for each in audited})
    private = [each for each in audited if each.accountant is not None]
    figure.add_scatter(
        x=[targets.index(each.target) for each in private],
        y=[each.accountant for each in private],
        mode="markers",
        name="accountant's ε",
        marker={"symbol": "line-ew-open", "size": 48, "color": BASELINE, "line": {"width": 3}},
        hovertemplate="accountant's ε: %{y:.2f}<extra></extra>",
    )
    for access in _SEEN:  # all at the same x for an ε; symbols distinguish them
        same = [each for each in audited if each.access == access]
        if same:
            _add_bounds(figure, same, [targets.index(each.target) for each in same])
    _style_axes(figure, "ε that the training guarantees", height=400)
    names = [describe_target(target) for target in targets]
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        range=[-0.5, len(names) - 0.5],
        showgrid=False,
    )
    highest = max((*(max(each.bounds) for each in audited), *(e.accountant or 0 for e in private)))
    # The mark of a bound of 0 must not be cut off.
    figure.update_yaxes(
        title="lower bound of ε by audit →",
        range=[-0.05 * highest - 0.05, 1.08 * highest + 0.1],
    )
    return figure


def describe_target(epsilon: float) -> str:
    """Format a target ε for axes and tables; ∞ is "no guarantee".

    Examples
    --------
    >>> describe_target(4.0), describe_target(float("inf"))
    ('ε = 4', 'no guarantee')
    """
    return "no guarantee" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def _add_bounds(figure: go.Figure, audited: Sequence[ModelAudit], places: Sequence[float]) -> None:
    """Add the median and range of audited ε bounds for one kind of access to a figure."""
    access = audited[0].access
    colour, symbol = _SEEN[access]
    figure.add_scatter(
        x=list(places),
        y=[each.median for each in audited],
        mode="markers",
        name=f"auditor sees {ACCESS[access]}",
        marker={"symbol": symbol, "size": 11, "color": colour},
        error_y=error_bars(
            [Score(a.median, Interval(min(a.bounds), max(a.bounds))) for a in audited],
            colour,
            thickness=1.5,
            width=5,
        ),
        customdata=[[len(each.bounds), min(each.bounds), max(each.bounds)] for each in audited],
        hovertemplate="median of %{customdata[0]} audits: %{y:.2f}<br>from %{customdata[1]:.2f} "
        f"to %{{customdata[2]:.2f}}<extra>{ACCESS[access]}</extra>",
    )


def _draw_null_law(figure: go.Figure, law: ChanceExposure) -> None:
    """Shade the exposures expected of never-planted canaries, and mark the maximum, in a figure."""
    figure.add_hrect(y0=0, y1=law.high, fillcolor=_SHADE, line_width=0, layer="below")
    figure.add_hline(y=law.mean, line=DOTTED)
    _annotate(figure, law.high, "range of 95 % of secrets never planted", "top")
    _annotate(figure, law.mean, f"their mean, {law.mean:.2f}", "top")
    if law.most is not None:
        figure.add_hline(y=law.most, line=DOTTED)
        most = f"maximum, the secret ranks first: {law.most:.1f} bits"
        _annotate(figure, law.most, most, "bottom", left=True)


def _annotate(figure: go.Figure, y: float, text: str, anchor: str, *, left: bool = False) -> None:
    """Write a text beside a horizontal line of a figure."""
    figure.add_annotation(
        x=0 if left else 1,
        xref="paper",
        xanchor="left" if left else "right",
        y=y,
        yanchor=anchor,
        text=text,
        showarrow=False,
    )


def _style_axes(figure: go.Figure, x: str, *, height: int) -> None:
    """Apply the shared style and the axis titles to a figure."""
    style(figure, height=height)
    figure.update_layout(legend=BELOW, margin={"l": 0, "r": 12, "t": 24, "b": 10}, showlegend=True)
    figure.update_xaxes(title=f"{x} →", gridcolor=GRID, zeroline=False)
    figure.update_yaxes(
        title="exposure, bits →", gridcolor=GRID, zeroline=False, rangemode="tozero"
    )
