"""Figure of adversarial training: scores during training, and new attackers' afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.figures.style import BASELINE, BELOW, GRID, LEAKED, error_bars, style
from leakscope.core.registry import Look
from leakscope.core.results import Score
from leakscope.core.studies.training.adversarial_tables import Setting

READ = {"words": "F1 of words", "attribute": "attribute inferred, %"}
"""Axis title of the adversary's score, by what is hidden."""

_COLOURS = ("#8A8F96", "#56B4E9", "#0072B2", "#7A5FA8", "#CC79A7", "#E69F00", "#B5A900", "#009E73")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "solid", "dash", "longdash")
"""Line dashes in the order of increasing λ, starting with none."""

_WEAKER = ("square-open", "triangle-up-open", "diamond-open", "cross-open", "x-open")
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_JUMP = {"color": "rgba(213,94,0,0.45)", "width": 5}


def describe_setting(setting: Setting) -> str:
    """Name a training setting, for legends and tables."""
    if setting.kind == "none":
        return "no defence"
    if setting.kind in TRAINED_DEFENCES and setting.kind != "adversarial":
        return TRAINED_DEFENCES[setting.kind].title
    return setting.label


def trap_figure(settings: Sequence[Setting], families: Mapping[str, str]) -> go.Figure:
    """Plot the adversary's score by epoch, and next to it the scores of new attackers.

    Parameters
    ----------
    settings : sequence of Setting
        Settings of one encoder and one hidden attribute, in drawing order.
    families : mapping
        New attacker to its family.
    """
    figure = make_subplots(
        rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04, column_widths=[0.48, 0.52]
    )
    looks = _line_styles(settings)
    for setting in settings:
        if setting.during:
            _add_line(figure, setting, *looks[setting.label])
    whole = [setting for setting in settings if setting.after]
    _add_jumps(figure, whole)
    _add_strongest(figure, whole, families)
    _add_weaker(figure, whole, families)
    _add_promised(figure, whole)
    _draw_chance(figure, [s.during[-1] for s in settings if s.during], "")
    _draw_chance(figure, [s.strongest[1] for s in whole], "2")
    _style_panels(figure, whole)
    return figure


def _line_styles(settings: Sequence[Setting]) -> dict[str, tuple[Look, str]]:
    """Return each setting's marker and dash."""
    trained = [setting.label for setting in settings if setting.during]
    return {
        said: (Look(_COLOURS[i % 8], _SYMBOLS[i % 8]), _DASHES[i % 8])
        for i, said in enumerate(trained)
    }


def _add_line(figure: go.Figure, setting: Setting, look: Look, dash: str) -> None:
    """Add a setting's curve during training."""
    name = describe_setting(setting)
    scores = setting.during
    figure.add_scatter(
        x=list(range(1, len(scores) + 1)),
        y=[score.value for score in scores],
        mode="lines+markers",
        name=name,
        line={"color": look.colour, "width": 2, "dash": dash},
        marker={"symbol": look.symbol, "size": 7, "color": look.colour},
        customdata=[[score.format()] for score in scores],
        hovertemplate=f"in training, epoch %{{x}}: %{{customdata[0]}}<extra>{name}</extra>",
        row=1,
        col=1,
    )


def _add_jumps(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Add lines from the last training score to the new attacker's score."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, setting in enumerate(settings):
        if setting.during:
            x += [i, i, None]
            y += [setting.during[-1].value, setting.strongest[1].value, None]
    figure.add_scatter(
        x=x, y=y, mode="lines", line=_JUMP, hoverinfo="skip", showlegend=False, row=1, col=2
    )


def _add_strongest(
    figure: go.Figure, settings: Sequence[Setting], families: Mapping[str, str]
) -> None:
    """Add the strongest new attacker's score of each setting."""
    found = [setting.strongest for setting in settings]
    scores = [score for _, score in found]
    figure.add_scatter(
        x=list(range(len(settings))),
        y=[score.value for score in scores],
        mode="markers",
        name="strongest new attacker, afterwards",
        marker={"symbol": "circle", "size": 11, "color": LEAKED},
        error_y=error_bars(scores, LEAKED, thickness=1.5),
        customdata=[
            [describe_setting(setting), families.get(name, name), score.format()]
            for setting, (name, score) in zip(settings, found, strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>new (%{customdata[1]}): %{customdata[2]}<extra></extra>",
        row=1,
        col=2,
    )


def _add_weaker(
    figure: go.Figure, settings: Sequence[Setting], families: Mapping[str, str]
) -> None:
    """Add the other new attackers' scores."""
    names = list(dict.fromkeys(name for setting in settings for name in setting.after))
    for symbol, name in zip(_WEAKER, names, strict=False):
        points = [
            (i, s) for i, s in enumerate(settings) if name in s.after and s.strongest[0] != name
        ]
        if not points:
            continue
        said = families.get(name, name)
        scores = [setting.after[name] for _, setting in points]
        figure.add_scatter(
            x=[i for i, _ in points],
            y=[score.value for score in scores],
            mode="markers",
            name=f"other new attacker: {said}",
            marker={"symbol": symbol, "size": 8, "color": LEAKED},
            customdata=[
                [describe_setting(s), score.format()]
                for (_, s), score in zip(points, scores, strict=True)
            ],
            hovertemplate="%{customdata[0]}<br>new (" + said + "): %{customdata[1]}<extra></extra>",
            row=1,
            col=2,
        )


def _add_promised(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Add the last training score of each setting."""
    trained = [(i, setting) for i, setting in enumerate(settings) if setting.during]
    if not trained:
        return
    scores = [setting.during[-1] for _, setting in trained]
    figure.add_scatter(
        x=[i for i, _ in trained],
        y=[score.value for score in scores],
        mode="markers",
        name="attacker used in training, last epoch",
        marker={"symbol": "circle-open", "size": 12, "color": BASELINE, "line": {"width": 2.5}},
        customdata=[
            [describe_setting(s), score.format()]
            for (_, s), score in zip(trained, scores, strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>in training, last epoch: %{customdata[1]}"
        "<extra></extra>",
        row=1,
        col=2,
    )


def _draw_chance(figure: go.Figure, scores: Sequence[Score], axis: str) -> None:
    """Draw the chance level in one of the two panels."""
    if not scores:
        return
    chance = sum(score.chance for score in scores) / len(scores)
    figure.add_shape(
        type="line",
        x0=0,
        x1=1,
        xref=f"x{axis} domain",
        y0=chance,
        y1=chance,
        yref=f"y{axis}",
        line=_DOTTED,
    )
    figure.add_annotation(
        x=1,
        xref=f"x{axis} domain",
        xanchor="right",
        y=chance,
        yref=f"y{axis}",
        yanchor="top",
        text=f"guessing {chance:.0f}",
        showarrow=False,
    )


def _style_panels(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Style the figure and title its panels and axes."""
    style(figure, height=540)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 12, "t": 30, "b": 10},
        showlegend=True,
    )
    hides = settings[0].hides if settings else "words"
    for axis, told in (("", "in training"), ("2", "new attackers, afterwards")):
        figure.add_annotation(
            x=0,
            xref=f"x{axis} domain",
            xanchor="left",
            y=1,
            yref="paper",
            yanchor="bottom",
            text=f"<b>{told}</b>",
            showarrow=False,
        )
    figure.update_yaxes(gridcolor=GRID, zeroline=False, rangemode="tozero")
    figure.update_yaxes(title=f"leaks: {READ[hides]} →", col=1)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_xaxes(title="epoch →", tickformat="d", nticks=6, col=1)
    symbol = settings[0].symbol if settings else "λ"
    figure.update_xaxes(
        title=f"{symbol} →",
        col=2,
        showgrid=False,
        range=[-0.6, len(settings) - 0.4],
        tickvals=list(range(len(settings))),
        ticktext=[_tick(setting) for setting in settings],
    )


def _tick(setting: Setting) -> str:
    """Return a setting's label on the x-axis."""
    if setting.kind == "adversarial":
        return f"{setting.weight:g}"
    return "none" if setting.kind == "none" else describe_setting(setting)
