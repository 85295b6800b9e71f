"""What an adversary reads in training, beside what fresh ones read after it: computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from core.defences.trained.registry import TRAINED_DEFENCES
from core.figures.style import BASELINE, BELOW, GRID, LEAKED, MISSED, error_bars, style
from core.registry import Look
from core.results import Score
from core.studies.adversarial_tables import Setting

__all__ = ["READ", "setting_said", "trap_figure"]

READ = {"words": "F1 of words", "attribute": "right about the attribute, %"}
"""What is read, by what is hidden."""

_COLOURS = ("#8A8F96", "#56B4E9", "#0072B2", "#7A5FA8", "#CC79A7", "#E69F00", "#B5A900", "#009E73")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "solid", "dash", "longdash")
"""Of λ growing, from none."""

_WEAKER = ("square-open", "triangle-up-open", "diamond-open", "cross-open", "x-open")
_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}
_JUMP = {"color": "rgba(213,94,0,0.45)", "width": 5}


def setting_said(setting: Setting) -> str:
    """Return a setting in a few words, as legends and tables have it."""
    if setting.kind == "none":
        return "no defence"
    if setting.kind in TRAINED_DEFENCES and setting.kind != "adversarial":
        return TRAINED_DEFENCES[setting.kind].title
    return setting.said


def trap_figure(settings: Sequence[Setting], families: Mapping[str, str]) -> go.Figure:
    """Return what is read in training by epoch, and beside it what is read afterwards.

    Parameters
    ----------
    settings : sequence of Setting
        Of one encoder and of what is hidden, in the order in which they stand side by side.
    families : mapping
        Fresh attacker to its family.
    """
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04,
                           column_widths=[0.48, 0.52])  # fmt: skip
    looks = _looks(settings)
    for setting in settings:
        if setting.during:
            _line(figure, setting, *looks[setting.said])
    whole = [setting for setting in settings if setting.after]
    _jumps(figure, whole)
    _strongest(figure, whole, families)
    _weaker(figure, whole, families)
    _promised(figure, whole)
    _guessing(figure, [s.during[-1] for s in settings if s.during], "")
    _guessing(figure, [s.strongest[1] for s in whole], "2")
    _finish(figure, whole)
    return figure


def _looks(settings: Sequence[Setting]) -> dict[str, tuple[Look, str]]:
    trained = [setting.said for setting in settings if setting.during]
    return {
        said: (Look(_COLOURS[i % 8], _SYMBOLS[i % 8]), _DASHES[i % 8])
        for i, said in enumerate(trained)
    }


def _line(figure: go.Figure, setting: Setting, look: Look, dash: str) -> None:
    name = setting_said(setting)
    scores = setting.during
    figure.add_scatter(
        x=list(range(1, len(scores) + 1)), y=[score.value for score in scores],
        mode="lines+markers", name=name,
        line={"color": look.colour, "width": 2, "dash": dash},
        marker={"symbol": look.symbol, "size": 7, "color": look.colour},
        customdata=[[score.said()] for score in scores],
        hovertemplate="in training, epoch %{x}: %{customdata[0]}" f"<extra>{name}</extra>",
        row=1, col=1,
    )  # fmt: skip


def _jumps(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Draw from what training promised to what is read."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, setting in enumerate(settings):
        if setting.during:
            x += [i, i, None]
            y += [setting.during[-1].value, setting.strongest[1].value, None]
    figure.add_scatter(x=x, y=y, mode="lines", line=_JUMP, hoverinfo="skip", showlegend=False,
                       row=1, col=2)  # fmt: skip


def _strongest(figure: go.Figure, settings: Sequence[Setting], families: Mapping[str, str]) -> None:
    found = [setting.strongest for setting in settings]
    scores = [score for _, score in found]
    figure.add_scatter(
        x=list(range(len(settings))), y=[score.value for score in scores], mode="markers",
        name="read afterwards by the strongest fresh attacker",
        marker={"symbol": "circle", "size": 11, "color": LEAKED},
        error_y=error_bars(scores, LEAKED, thickness=1.5),
        customdata=[[setting_said(setting), families.get(name, name), score.said()]
                    for setting, (name, score) in zip(settings, found, strict=True)],
        hovertemplate="%{customdata[0]}<br>fresh (%{customdata[1]}): %{customdata[2]}"
        "<extra></extra>",
        row=1, col=2,
    )  # fmt: skip


def _weaker(figure: go.Figure, settings: Sequence[Setting], families: Mapping[str, str]) -> None:
    """Draw the other fresh attackers, each where it is not the strongest."""
    names = list(dict.fromkeys(name for setting in settings for name in setting.after))
    for symbol, name in zip(_WEAKER, names, strict=False):
        points = [(i, s) for i, s in enumerate(settings)
                  if name in s.after and s.strongest[0] != name]  # fmt: skip
        if not points:
            continue
        said = families.get(name, name)
        scores = [setting.after[name] for _, setting in points]
        figure.add_scatter(
            x=[i for i, _ in points], y=[score.value for score in scores], mode="markers",
            name=f"another: {said}",
            marker={"symbol": symbol, "size": 8, "color": LEAKED},
            customdata=[[setting_said(s), score.said()]
                        for (_, s), score in zip(points, scores, strict=True)],
            hovertemplate="%{customdata[0]}<br>fresh (" + said + "): %{customdata[1]}"
            "<extra></extra>",
            row=1, col=2,
        )  # fmt: skip


def _promised(figure: go.Figure, settings: Sequence[Setting]) -> None:
    trained = [(i, setting) for i, setting in enumerate(settings) if setting.during]
    if not trained:
        return
    scores = [setting.during[-1] for _, setting in trained]
    figure.add_scatter(
        x=[i for i, _ in trained], y=[score.value for score in scores], mode="markers",
        name="promised by the last epoch in training",
        marker={"symbol": "circle-open", "size": 12, "color": MISSED, "line": {"width": 2.5}},
        customdata=[[setting_said(s), score.said()]
                    for (_, s), score in zip(trained, scores, strict=True)],
        hovertemplate="%{customdata[0]}<br>in training, last epoch: %{customdata[1]}"
        "<extra></extra>",
        row=1, col=2,
    )  # fmt: skip


def _guessing(figure: go.Figure, scores: Sequence[Score], axis: str) -> None:
    """Draw what guessing reaches, which is not the same of both halves."""
    if not scores:
        return
    chance = sum(score.chance for score in scores) / len(scores)
    figure.add_shape(type="line", x0=0, x1=1, xref=f"x{axis} domain", y0=chance, y1=chance,
                     yref=f"y{axis}", line=_DOTTED)  # fmt: skip
    figure.add_annotation(
        x=1, xref=f"x{axis} domain", xanchor="right", y=chance, yref=f"y{axis}", yanchor="top",
        text=f"guessing {chance:.0f}", showarrow=False,
    )  # fmt: skip


def _finish(figure: go.Figure, settings: Sequence[Setting]) -> None:
    style(figure, height=540)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 12, "t": 30, "b": 10},
        showlegend=True,
    )
    hides = settings[0].hides if settings else "words"
    for axis, told in (("", "in training"), ("2", "fresh, afterwards")):
        figure.add_annotation(x=0, xref=f"x{axis} domain", xanchor="left", y=1, yref="paper",
                              yanchor="bottom", text=f"<b>{told}</b>",
                              showarrow=False)  # fmt: skip
    figure.update_yaxes(gridcolor=GRID, zeroline=False, rangemode="tozero")
    figure.update_yaxes(title=f"read: {READ[hides]} →", col=1)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_xaxes(title="epoch →", tickformat="d", nticks=6, col=1)
    symbol = "λ_w" if hides == "words" else "λ_s"
    figure.update_xaxes(
        title=f"{symbol} →", col=2, showgrid=False, range=[-0.6, len(settings) - 0.4],
        tickvals=list(range(len(settings))), ticktext=[_tick(setting) for setting in settings],
    )  # fmt: skip


def _tick(setting: Setting) -> str:
    if setting.kind == "adversarial":
        return f"{setting.weight:g}"
    return "none" if setting.kind == "none" else setting_said(setting)
