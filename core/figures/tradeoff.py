"""Privacy against utility as a figure: computes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import wrap

import plotly.graph_objects as go

from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.defences.registry import DEFENCES, look_of_defence, stages_of
from core.defences.trained.registry import TRAINED_DEFENCES
from core.errors import InvalidInputError
from core.figures.style import BASELINE, BELOW, GRID, error_bars, hover_line, style
from core.registry import Look, looks_of
from core.studies.tradeoff_choice import attacked, is_readable_and_worse, leak_of
from core.studies.tradeoff_frontier import Ends, Frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_setting import entry_shown, milliseconds_said, minutes_said
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said

__all__ = ["attacker_said", "tradeoff_figure"]

_ATTACKERS = {
    "tuned": "tuned classifier",
    "search": "re-embedding search",
    "shipped": "re-embedding search as it ships",
    "reconstruct": "reconstruction of the sentence",
    "tokens": "reader of released tokens",
    "posterior": "reader who knows the mechanism",
    "grid": "reader who knows the mechanism and its rounding",
    "mlp": "network of one hidden layer",
    "knn": "nearest neighbours",
}


def attacker_said(name: str) -> str:
    """Return what an attacker of the study is called where people read it.

    Examples
    --------
    >>> attacker_said("search"), attacker_said("probe_mlc")
    ('re-embedding search', 'Probe-started classifier')
    """
    known = {**CLASSIFIER_ATTACKS, **ATTRIBUTE_ATTACKS, **INVERSION_ATTACKS}
    entry = known.get(name)
    return _ATTACKERS.get(name, entry.title if entry else name)


def tradeoff_figure(
    found: Tradeoff,
    task: str,
    *,
    reads: str = "words",
    chosen: Mapping[str, int] | None = None,
    defences: tuple[str, ...] = (),
    edge: Frontier | None = None,
    is_timed: bool = False,
) -> go.Figure:
    """Return leakage over the utility of one task, a line a defence, strengths along it.

    Parameters
    ----------
    reads : str
        What the attacker is after.
    chosen : mapping of str to int, optional
        Letters, and the indices of the points that they ring.
    defences : tuple of str
        Shown besides the undefended encoder, each strength by its name; all by default, their
        strengths unnamed, as there is no room.
    edge : Frontier, optional
        Drawn as a line with a band.
    is_timed : bool
        Points are asked for that take no longer than some time: those not timed are hollow.
    """
    figure = go.Figure()
    shown = {id(point) for point in attacked(found, task, reads)}
    points = [(i, p) for i, p in enumerate(found.points) if id(p) in shown]
    ringed = {found.points[i].defence for i in (chosen or {}).values()}
    lines: dict[tuple[str, str], list[tuple[int, Point]]] = {}
    for i, point in points:
        lines.setdefault((point.defence, point.kind), []).append((i, point))
    for (name, kind), own in lines.items():
        if not defences or name in defences or entry_shown(name).is_baseline:
            is_one = sum(other == name for other, _ in lines) == 1
            title = ", ".join(filter(None, (entry_shown(name).title, "" if is_one else kind)))
            dash = _DASHES[[k for n, k in lines if n == name].index(kind) % len(_DASHES)]
            look = (title, dash)
            _line(figure, own, (task, reads), look, is_timed=is_timed, has_names=bool(defences))
            if entry_shown(name).is_baseline or name in ringed:
                figure.data[-1].legendrank = 2  # highlighted: a legend that is cut keeps it
    drawn = [p for _, p in points if not defences or p.defence in defences]
    _label_readable(figure, drawn, found.undefended, task, reads)
    _guessing(figure, found.undefended, task, reads)
    if edge is not None:
        _draw_edge(figure, edge)
    for letter, i in (chosen or {}).items():
        if id(found.points[i]) in shown:
            _ring(figure, found.points[i], task, reads, letter)
    _lay_out(figure, f"{task_said(task)}, {_unit(found, task)}", reads)
    return figure


def _lay_out(figure: go.Figure, useful: str, reads: str) -> None:
    style(figure, height=600)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 12, "t": 20, "b": 10},
        clickmode="event+select",
    )
    title = "<br>".join(wrap(f"useful: {useful} →", _TITLE_WIDTH))
    figure.update_xaxes(title=title, gridcolor=GRID, zeroline=False)
    # Guessing members reaches a half: nothing stands between that and zero.
    start = "normal" if reads == "membership" else "tozero"
    figure.update_yaxes(
        title=f"leaks: {READS[reads]} →", gridcolor=GRID, zeroline=False, rangemode=start
    )


def _unit(found: Tradeoff, task: str) -> str:
    measure = found.measures.get(task, "")
    return _UNITS.get(measure, measure)


READABLE = "readable release"
READABLE_MARK = "R"
"""Stands beside a point instead: several lie close together."""
"""Stands beside a point whose tokens, or vectors of tokens, leak more than no defence."""

_DASHES = ("solid", "dash", "dot", "dashdot")
"""Of the kinds of one defence, such as what is hidden."""

_UNITS = {
    "accuracy": "accuracy, per cent",
    "spearman": "correlation with people, × 100",
    "recall@1": "found first, per cent",
    "precision@1": "nearest text has the same label, per cent",
}

_TITLE_WIDTH = 44
"""Letters of a line that a telephone shows below a figure."""

_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}


_BAND, _EDGE = "rgba(128,128,128,0.16)", "rgba(128,128,128,0.9)"


def _draw_edge(figure: go.Figure, edge: Frontier) -> None:
    """Draw what some setting surely reaches, and the band down to what none does."""
    if len(edge.surely) < 2:
        return
    corner = (edge.perhaps[-1][0], edge.surely[-1][1])
    band = _path([*edge.surely, corner, *reversed(edge.perhaps)]) + " Z"
    common = {"type": "path", "layer": "below", "xref": "x", "yref": "y", "showlegend": True,
              "legendrank": 1}  # fmt: skip
    figure.add_shape(
        path=band,
        fillcolor=_BAND,
        line={"width": 0},
        name="the best setting lies in this band",
        **common,
    )
    figure.add_shape(
        path=_path(edge.surely),
        line={"color": _EDGE, "width": 2, "dash": "dash"},
        name="reached by some setting",
        **common,
    )


def _path(corners: list[Ends] | tuple[Ends, ...]) -> str:
    return "M " + " L ".join(f"{useful:.4f},{leaks:.4f}" for useful, leaks in corners)


def _ring(figure: go.Figure, point: Point, task: str, reads: str, letter: str) -> None:
    """Mark a point that was chosen, and say in the legend which it is."""
    title = entry_shown(point.defence).title
    figure.add_scatter(
        x=[point.utility[task].value],
        y=[leak_of(point, reads).value],
        mode="markers+text",
        text=[f"<b>{letter}</b>"],
        textposition="top left" if letter == "A" else "top right",
        textfont={"size": 15},
        marker={"size": 22, "symbol": "circle-open", "color": BASELINE, "line": {"width": 3}},
        hoverinfo="skip",
        name=f"ring {letter}: {', '.join(filter(None, (title, point.label)))}",
        legendrank=1,
    )


def _label_readable(
    figure: go.Figure, points: list[Point], base: Point, task: str, reads: str
) -> None:
    """Write beside each point that leaks more than no defence that its release is readable."""
    worse = [point for point in points if is_readable_and_worse(point, base, reads)]
    if worse:
        figure.add_scatter(
            x=[point.utility[task].value for point in worse],
            y=[leak_of(point, reads).value for point in worse],
            mode="text",
            text=[READABLE_MARK] * len(worse),
            textposition="top left",
            textfont={"size": 11},
            hoverinfo="skip",
            name=f"{READABLE_MARK}: {READABLE}, leaks more than no defence",
            legendrank=2,
        )


def _look(name: str) -> Look:
    """Return how a defence is drawn, a trained one included; one that is not known in grey."""
    try:
        return look_of_defence(name)
    except InvalidInputError:
        looks = {**looks_of(TRAINED_DEFENCES), **looks_of(DEFENCES)}
    first, last = stages_of(name)[0], stages_of(name)[-1]
    if first not in looks or last not in looks:
        return Look(BASELINE, "circle-open")
    return Look(looks[first].colour, looks[last].symbol)


def _line(
    figure: go.Figure,
    members: list[tuple[int, Point]],
    axes: tuple[str, str],
    shown: tuple[str, str],
    *,
    is_timed: bool,
    has_names: bool,
) -> None:
    (task, reads), (title, dash), name = axes, shown, members[0][1].defence
    colour, symbol = _look(name)
    faint = f"rgba{(*bytes.fromhex(colour[1:]), 0.35)}"
    useful = [point.utility[task] for _, point in members]
    leaks = [leak_of(point, reads) for _, point in members]
    entry = entry_shown(name)
    symbols: str | list[str] = symbol
    if is_timed and any(point.milliseconds is None for _, point in members):
        symbols = [symbol if p.milliseconds is not None else f"{symbol}-open" for _, p in members]
    size = 15 if entry.is_baseline else 10
    figure.add_scatter(
        x=[score.value for score in useful],
        y=[score.value for score in leaks],
        error_x=error_bars(useful, faint, width=0),
        error_y=error_bars(leaks, faint, width=0),
        mode="lines+markers+text" if has_names else "lines+markers",
        text=[point.label for _, point in members] if has_names else None,
        textposition="bottom right",
        name=title,
        line={"color": colour, "width": 1.5, "dash": dash},
        marker={"symbol": symbols, "size": size, "color": colour},
        customdata=[[i, point.label or title, *_told(point, reads)] for i, point in members],
        hovertemplate=f"{title}, %{{customdata[1]}}<br>useful %{{x:.1f}}, leaks %{{y:.1f}}"
        "<br>to the %{customdata[2]}<br>%{customdata[3]}%{customdata[4]}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _told(point: Point, reads: str) -> tuple[str, str, str]:
    """Return what a pointer shows besides the numbers: by whom, at what cost, from where."""
    strongest = point.strongest(reads)
    training, a_text = minutes_said(point), milliseconds_said(point)
    cost = f"training: {training}; a text: {a_text}" if training != a_text else training
    by = attacker_said(strongest[0]) if strongest else ""
    return by, cost, hover_line(point.provenances)


def _guessing(figure: go.Figure, base: Point, task: str, reads: str) -> None:
    """Draw what guessing reaches on either axis, where it is known."""
    useless, blind = base.utility[task].chance, leak_of(base, reads).chance
    if not math.isnan(useless):
        figure.add_vline(x=useless, line=_DOTTED)
        _corner(figure, useless, 1, f"chance {useless:.0f}", "left")
    if not math.isnan(blind):
        figure.add_hline(y=blind, line=_DOTTED)
        figure.add_annotation(
            x=1,
            xref="paper",
            xanchor="right",
            y=blind,
            yanchor="bottom",
            text=f"guessing without the vector {blind:.0f}",
            showarrow=False,
        )


def _corner(figure: go.Figure, x: float, y: float, text: str, anchor: str) -> None:
    figure.add_annotation(
        x=x, y=y, yref="paper", xanchor=anchor, yanchor="top", text=text, showarrow=False
    )
