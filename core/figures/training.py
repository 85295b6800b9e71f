"""Figures of training for privacy: against an adversary, under noise, and with DP.

Our points are filled; those of the paper are hollow diamonds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.figures.style import BASELINE, BELOW, DOTTED, GRID, LEAKED, error_bars, style
from leakscope.core.registry import Look, marker_styles
from leakscope.core.results import Score
from leakscope.core.studies.training.adversarial_tables import Setting
from leakscope.core.studies.training.privacy_paper import ADAPTED, CONSTRAINED, MATCHED, NULL
from leakscope.core.studies.training.summary import Adapted, Constrained, PrivateHead, PrivateModel

READ = {"words": "F1 of words", "attribute": "attribute inferred, %"}
"""Axis title of the adversary's score, by what is hidden."""

_COLOURS = ("#8A8F96", "#56B4E9", "#0072B2", "#7A5FA8", "#CC79A7", "#E69F00", "#B5A900", "#009E73")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon", "star")
_DASHES = ("dot", "solid", "dash", "longdash", "dashdot", "solid", "dash", "longdash")
"""Line dashes in the order of increasing λ, starting with none."""

_WEAKER = ("square-open", "triangle-up-open", "diamond-open", "cross-open", "x-open")

_PAPER = "Qu et al. (2021), in the same colours"
_PLAIN = Look("#8A8F96", "circle")
"""Style of models fine-tuned under noise without pretraining."""
_NEAR = 5.0
"""Minimum distance between axis ticks, so that their labels do not overlap."""

_HEADS = (
    (Look("#0072B2", "circle"), "solid"),
    (Look("#E69F00", "square"), "dash"),
    (Look("#7A5FA8", "diamond"), "longdash"),
)
_APART = 0.08
"""Horizontal offset between heads, so that their intervals do not overlap."""


def _add_line(
    figure: go.Figure,
    name: str,
    x: Sequence[float],
    scores: Sequence[Score],
    look: Look,
    dash: str = "solid",
    *,
    size: int = 9,
    **more: Any,
) -> None:
    """Add a line of scores with error bars to a figure; `more` overrides trace properties."""
    properties: dict[str, Any] = {
        "x": list(x),
        "y": [score.value for score in scores],
        "mode": "lines+markers",
        "name": name,
        "line": {"color": look.colour, "width": 2, "dash": dash},
        "marker": {"symbol": look.symbol, "size": size, "color": look.colour},
        "error_y": error_bars(scores, look.colour),
    }
    figure.add_scatter(**properties | more)


def _annotate(figure: go.Figure, y: float, text: str, *, side: str = "right", **place: str) -> None:
    """Write a text at one end of a horizontal line of a figure, by default above the right end."""
    figure.add_annotation(
        **{
            "x": float(side == "right"),
            "xref": "paper",
            "xanchor": side,
            "y": y,
            "yanchor": "bottom",
            "text": text,
            "showarrow": False,
            **place,
        }
    )


def _lay_out(figure: go.Figure, height: int, *, top: int = 24) -> None:
    """Apply the shared style to a figure, with the legend below it."""
    style(figure, height=height)
    margin = {"l": 0, "r": 12, "t": top, "b": 10}
    figure.update_layout(legend=BELOW, margin=margin, showlegend=True)
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)


# Against an adversary


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
    trained = [setting for setting in settings if setting.during]
    styles = {setting.label: i % 8 for i, setting in enumerate(trained)}
    for setting in trained:
        i, name, scores = styles[setting.label], describe_setting(setting), setting.during
        _add_line(
            figure,
            name,
            range(1, len(scores) + 1),
            scores,
            Look(_COLOURS[i], _SYMBOLS[i]),
            _DASHES[i],
            size=7,
            error_y=None,
            customdata=[[score.format()] for score in scores],
            hovertemplate=f"in training, epoch %{{x}}: %{{customdata[0]}}<extra>{name}</extra>",
            row=1,
            col=1,
        )
    whole = [setting for setting in settings if setting.after]
    _add_jumps(figure, whole)
    _add_attackers(figure, whole, families)
    _draw_mean_chance(figure, [setting.during[-1] for setting in trained], "")
    _draw_mean_chance(figure, [setting.strongest[1] for setting in whole], "2")
    _style_panels(figure, whole)
    return figure


def _add_jumps(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Add lines to a figure, from the last score in training to the new attacker's score."""
    x: list[float | None] = []
    y: list[float | None] = []
    for i, setting in enumerate(settings):
        if setting.during:
            x += [i, i, None]
            y += [setting.during[-1].value, setting.strongest[1].value, None]
    line = {"color": "rgba(213,94,0,0.45)", "width": 5}
    figure.add_scatter(
        x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False, row=1, col=2
    )


def _add_attackers(
    figure: go.Figure, settings: Sequence[Setting], families: Mapping[str, str]
) -> None:
    """Add the scores of new attackers (the best, the others) and of the last epoch to a figure."""
    strongest = [(i, setting, setting.strongest[1]) for i, setting in enumerate(settings)]
    _add_markers(
        figure,
        "strongest new attacker, afterwards",
        strongest,
        "new (%{customdata[1]}): %{customdata[2]}",
        marker={"symbol": "circle", "size": 11, "color": LEAKED},
        error_y=error_bars([score for *_, score in strongest], LEAKED, thickness=1.5),
        customdata=[
            [describe_setting(s), families.get(s.strongest[0], s.strongest[0]), score.format()]
            for _, s, score in strongest
        ],
    )
    names = list(dict.fromkeys(name for setting in settings for name in setting.after))
    for symbol, name in zip(_WEAKER, names, strict=False):
        points = [
            (i, s, s.after[name])
            for i, s in enumerate(settings)
            if name in s.after and s.strongest[0] != name
        ]
        if points:
            family = families.get(name, name)
            _add_markers(
                figure,
                f"other new attacker: {family}",
                points,
                "new (" + family + "): %{customdata[1]}",
                marker={"symbol": symbol, "size": 8, "color": LEAKED},
            )
    last = [(i, s, s.during[-1]) for i, s in enumerate(settings) if s.during]
    if last:
        _add_markers(
            figure,
            "attacker used in training, last epoch",
            last,
            "in training, last epoch: %{customdata[1]}",
            marker={"symbol": "circle-open", "size": 12, "color": BASELINE, "line": {"width": 2.5}},
        )


def _add_markers(
    figure: go.Figure,
    name: str,
    points: Sequence[tuple[int, Setting, Score]],
    hover: str,
    **more: Any,
) -> None:
    """Add markers of several settings' scores to the figure's right panel."""
    properties: dict[str, Any] = {
        "x": [i for i, *_ in points],
        "y": [score.value for *_, score in points],
        "mode": "markers",
        "name": name,
        "customdata": [[describe_setting(s), score.format()] for _, s, score in points],
        "hovertemplate": "%{customdata[0]}<br>" + hover + "<extra></extra>",
    }
    figure.add_scatter(**properties | more, row=1, col=2)


def _draw_mean_chance(figure: go.Figure, scores: Sequence[Score], axis: str) -> None:
    """Draw the mean chance level of scores in one of the figure's two panels."""
    if scores:
        chance = sum(score.chance for score in scores) / len(scores)
        x, y = f"x{axis} domain", f"y{axis}"
        figure.add_shape(type="line", x0=0, x1=1, xref=x, y0=chance, y1=chance, yref=y, line=DOTTED)
        _annotate(figure, chance, f"guessing {chance:.0f}", xref=x, yref=y, yanchor="top")


def _style_panels(figure: go.Figure, settings: Sequence[Setting]) -> None:
    """Style the figure and title its panels and axes."""
    _lay_out(figure, 540, top=30)
    for axis, title in (("", "in training"), ("2", "new attackers, afterwards")):
        text, x = f"<b>{title}</b>", f"x{axis} domain"
        _annotate(figure, 1, text, side="left", xref=x, yref="paper")
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title=f"leaks: {READ[settings[0].hides if settings else 'words']} →", col=1)
    figure.update_xaxes(title="epoch →", tickformat="d", nticks=6, col=1)
    figure.update_xaxes(
        title=f"{settings[0].symbol if settings else 'λ'} →",
        col=2,
        showgrid=False,
        range=[-0.6, len(settings) - 0.4],
        tickvals=list(range(len(settings))),
        ticktext=[_tick_label(setting) for setting in settings],
    )


def _tick_label(setting: Setting) -> str:
    """Return the x-axis label of a training setting."""
    if setting.kind == "adversarial":
        return f"{setting.weight:g}"
    return "none" if setting.kind == "none" else describe_setting(setting)


# Under noise


def utility_figure(points: Sequence[Constrained]) -> go.Figure:
    """Plot a task's accuracy by η, one line per mechanism and number of releases."""
    figure = go.Figure()
    noisy = [point for point in points if math.isfinite(point.eta)]
    arms = {(point.mechanism, point.releases): None for point in noisy}
    for mechanism, releases in arms:
        entry = DEFENCES[mechanism]
        own = [p for p in noisy if (p.mechanism, p.releases) == (mechanism, releases)]
        dash = "solid" if releases == 1 else "dash"
        name = f"{entry.title}, {f'{releases} releases' if releases > 1 else 'one release'}"
        look = Look(entry.colour, entry.symbol)
        _add_eta_line(figure, name, look, [(p.eta, p.accuracy) for p in own], dash)
        if (mechanism, 1) in arms and releases > 1:
            continue
        theirs = CONSTRAINED.get((own[0].task, own[0].reader, mechanism), {})
        _add_paper(figure, theirs, look.colour)
    null = next((point for point in points if math.isinf(point.eta)), None)
    if null is not None:
        _draw_without_noise(figure, null.accuracy, NULL.get((null.task, null.reader)))
    elif points:
        _draw_guessing(figure, points[0].accuracy.chance)
    _style_eta_axes(figure, [point.eta for point in noisy])
    return figure


def adapted_figure(points: Sequence[Adapted]) -> go.Figure:
    """Plot a task's accuracy by η, one line per pretraining objective."""
    figure = go.Figure()
    first = points[0]
    looks = marker_styles(OBJECTIVES)
    plain = {point.eta: point.plain for point in points}
    _add_eta_line(figure, "not pretrained under noise", _PLAIN, sorted(plain.items()), "dash")
    theirs = CONSTRAINED.get((first.task, "transformer", first.mechanism), {})
    _add_paper(figure, theirs, _PLAIN.colour)
    for name in (name for name in OBJECTIVES if name in {p.objective for p in points}):
        own = [(p.eta, p.accuracy) for p in points if p.objective == name]
        _add_eta_line(figure, OBJECTIVES[name].title, looks[name], own)
        theirs = ADAPTED.get((first.task, first.mechanism, name), {})
        _add_paper(figure, theirs, looks[name].colour)
    _draw_without_noise(figure, first.null, first.their_null)
    _style_eta_axes(figure, [point.eta for point in points])
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
    _lay_out(figure, 380)
    figure.update_xaxes(title="tokens seen at this η →")
    figure.update_yaxes(title="loss on held-out texts, nats →")
    return figure


def _add_eta_line(
    figure: go.Figure,
    name: str,
    look: Look,
    points: Sequence[tuple[float, Score]],
    dash: str = "solid",
) -> None:
    """Add a line of (η, score) points to a figure."""
    etas, scores = [eta for eta, _ in points], [score for _, score in points]
    _add_line(
        figure,
        name,
        etas,
        scores,
        look,
        dash,
        customdata=[[score.format()] for score in scores],
        hovertemplate=f"η %{{x:g}}: %{{customdata[0]}} %<extra>{name}</extra>",
    )


def _add_paper(figure: go.Figure, theirs: dict[int, float], colour: str) -> None:
    """Add a paper's results to a figure, at those η of ours that match theirs."""
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


def _draw_without_noise(figure: go.Figure, null: Score, theirs: float | None) -> None:
    """Draw the accuracy without noise, its interval and the chance level in a figure."""
    if null.has_interval:
        figure.add_hrect(
            y0=null.ci95.low,
            y1=null.ci95.high,
            line_width=0,
            layer="below",
            fillcolor="rgba(128,128,128,0.16)",
        )
    figure.add_hline(y=null.value, line={"color": BASELINE, "width": 1.5})
    paper = "" if theirs is None else f" (paper: {theirs:.1f})"
    _annotate(figure, null.value, f"without noise {null.value:.1f}{paper}", side="left")
    _draw_guessing(figure, null.chance)


def _draw_guessing(figure: go.Figure, chance: float) -> None:
    """Draw the chance level in a figure, labelled at the right, where points seldom are."""
    if math.isfinite(chance):
        figure.add_hline(y=chance, line=DOTTED)
        _annotate(figure, chance, f"guessing {chance:.0f}")


def _style_eta_axes(figure: go.Figure, etas: Sequence[float]) -> None:
    """Style the axes of a figure over η."""
    _lay_out(figure, 460)
    theirs = [eta for eta in MATCHED if min(abs(eta - own) for own in etas) > _NEAR]
    figure.update_xaxes(title="η: less noise →", tickvals=sorted({*theirs, *etas}))
    figure.update_yaxes(title="utility: accuracy, % →")


# With differential privacy


def describe_epsilon(epsilon: float) -> str:
    """Format an ε for axes and tables; ∞ for no privacy.

    Examples
    --------
    >>> describe_epsilon(8.0), describe_epsilon(float("inf"))
    ('8', '∞')
    """
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def private_figure(heads: Sequence[PrivateHead]) -> go.Figure:
    """Plot accuracy (top) and membership AUC (bottom) by ε, one line per head."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    epsilons = sorted({head.epsilon for head in heads})
    for i, hidden in enumerate(dict.fromkeys(head.hidden for head in heads)):
        own = [head for head in heads if head.hidden == hidden]
        look, dash = _HEADS[i % len(_HEADS)]
        accuracies = [(head, head.accuracy, " %") for head in own]
        aucs = [(head, head.auc.in_percent(), "") for head in own]
        for row, scores in enumerate((accuracies, aucs), 1):
            _add_line(
                figure,
                f"head: {own[0].head}",
                [epsilons.index(head.epsilon) + _APART * i for head in own],
                [score for _, score, _ in scores],
                look,
                dash,
                legendgroup=str(i),
                showlegend=row == 1,
                customdata=[
                    [describe_epsilon(head.epsilon), score.format() + unit]
                    for head, score, unit in scores
                ],
                hovertemplate="ε %{customdata[0]}: %{customdata[1]}<extra>"
                f"{own[0].head}</extra>",
                row=row,
                col=1,
            )
    chance = heads[0].accuracy.chance
    _draw_epsilon_chance(figure, chance, "y", f"guessing {chance:.0f}")
    _draw_epsilon_chance(figure, 50, "y2", "coin toss: 50")
    _lay_out(figure, 560)
    _style_epsilon_axis(figure, epsilons, row=2)
    figure.update_yaxes(title="utility: accuracy, % →", row=1)
    figure.update_yaxes(title="leaks: membership AUC →", row=2)
    return figure


def exposure_figure(models: Sequence[PrivateModel]) -> go.Figure:
    """Plot the exposure of planted canaries by ε, and of canaries never planted."""
    figure = go.Figure()
    epsilons = [model.epsilon for model in models]
    kinds = (
        ("planted", Look(LEAKED, "circle"), "solid", [model.exposure for model in models]),
        (
            "planted nowhere",
            Look(BASELINE, "circle-open"),
            "dash",
            [model.controls for model in models],
        ),
    )
    for name, look, dash, scores in kinds:
        _add_line(
            figure,
            name,
            range(len(models)),
            scores,
            look,
            dash,
            size=10,
            customdata=[
                [describe_epsilon(e), s.format()] for e, s in zip(epsilons, scores, strict=True)
            ],
            hovertemplate=f"ε %{{customdata[0]}}: %{{customdata[1]}} bits<extra>{name}</extra>",
        )
    chance = models[0].exposure.chance
    _draw_epsilon_chance(figure, chance, "y", f"expected if not planted: {chance:.2f}")
    _lay_out(figure, 380)
    _style_epsilon_axis(figure, epsilons)
    figure.update_yaxes(title="exposure, bits →", rangemode="tozero")
    return figure


def _draw_epsilon_chance(figure: go.Figure, chance: float, axis: str, text: str) -> None:
    """Draw a labelled chance level in a figure; nothing if it is not known."""
    if not math.isnan(chance):
        figure.add_shape(
            type="line", x0=0, x1=1, xref="paper", y0=chance, y1=chance, yref=axis, line=DOTTED
        )
        _annotate(figure, chance, text, yref=axis)


def _style_epsilon_axis(figure: go.Figure, epsilons: Sequence[float], **place: int) -> None:
    """Label the x-axis of a figure with the ε values."""
    figure.update_xaxes(
        tickvals=list(range(len(epsilons))),
        ticktext=[describe_epsilon(epsilon) for epsilon in epsilons],
        range=[-0.4, len(epsilons) - 0.6],
    )
    figure.update_xaxes(title="ε: less privacy →", **place)
