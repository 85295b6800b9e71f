"""Figure of the privacy–utility trade-off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import wrap

import plotly.graph_objects as go

from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import DEFENCES, look_of_defence
from leakscope.core.defences.setting import entry_shown
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.errors import InvalidInputError
from leakscope.core.figures.style import (
    BASELINE,
    BELOW,
    DOTTED,
    GRID,
    error_bars,
    hover_line,
    style,
)
from leakscope.core.registry import Look, marker_styles
from leakscope.core.studies.tradeoff.choice import (
    Ends,
    Frontier,
    attacked_settings,
    is_readable_and_worse,
    leak_of,
)
from leakscope.core.studies.tradeoff.summary import (
    READS,
    Point,
    Tradeoff,
    describe_milliseconds,
    describe_minutes,
)
from leakscope.core.tasks.names import describe_task

_ATTACKERS = {
    "tuned": "tuned classifier",
    "search": "re-embedding search",
    "shipped": "shipped re-embedding search",
    "reconstruct": "sentence reconstruction",
    "tokens": "literal token decoder",
    "posterior": "token decoder that knows the mechanism",
    "grid": "token decoder that knows the mechanism and its rounding",
    "mlp": "network with one hidden layer",
    "knn": "nearest neighbours",
}


def format_attacker(name: str) -> str:
    """Return the readable name of an attacker, given by its key in the results.

    Examples
    --------
    >>> format_attacker("search"), format_attacker("probe_mlc")
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
    """Plot leakage over one task's utility, one line per defence, along its strengths.

    Parameters
    ----------
    reads : str
        The attacker's target.
    chosen : mapping of str to int, optional
        Letters, and the indices of the points that they ring.
    defences : tuple of str
        Shown with the undefended encoder, each strength labelled; by default, all defences are
        shown, without labels.
    edge : Frontier, optional
        Drawn as a line with a band.
    is_timed : bool
        Whether a time limit applies: points that were not timed are hollow.
    """
    figure = go.Figure()
    shown = {id(point) for point in attacked_settings(found, task, reads)}
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
            _add_line(figure, own, (task, reads), look, is_timed=is_timed, has_names=bool(defences))
            if entry_shown(name).is_baseline or name in ringed:
                figure.data[-1].legendrank = 2  # highlighted: a legend that is cut keeps it
    drawn = [p for _, p in points if not defences or p.defence in defences]
    _label_readable(figure, drawn, found.undefended, task, reads)
    _draw_chance(figure, found.undefended, task, reads)
    if edge is not None:
        _draw_edge(figure, edge)
    for letter, i in (chosen or {}).items():
        if id(found.points[i]) in shown:
            _add_ring(figure, found.points[i], task, reads, letter)
    _lay_out(figure, f"{describe_task(task)}, {_describe_unit(found, task)}", reads)
    return figure


def _lay_out(figure: go.Figure, useful: str, reads: str) -> None:
    """Apply the shared style to the trade-off figure, and title its axes."""
    style(figure, height=600)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 12, "t": 20, "b": 10},
        clickmode="event+select",
    )
    title = "<br>".join(wrap(f"utility: {useful} →", _TITLE_WIDTH))
    figure.update_xaxes(title=title, gridcolor=GRID, zeroline=False)
    # Guessing membership has an AUC of 50: nothing lies between that and zero.
    start = "normal" if reads == "membership" else "tozero"
    figure.update_yaxes(
        title=f"leakage: {READS[reads]} →", gridcolor=GRID, zeroline=False, rangemode=start
    )


def _describe_unit(found: Tradeoff, task: str) -> str:
    """Return in words what a task's utility measure counts, such as "accuracy, per cent"."""
    measure = found.measures.get(task, "")
    return _UNITS.get(measure, measure)


READABLE = "readable release"
READABLE_MARK = "R"
"""Mark of a point whose readable release leaks more than no defence; see the legend."""

_DASHES = ("solid", "dash", "dot", "dashdot")
"""Line dashes for variants of one defence."""

_UNITS = {
    "accuracy": "accuracy, per cent",
    "spearman": "correlation with human scores, × 100",
    "recall@1": "right text found first, per cent",
    "precision@1": "nearest text has the same label, per cent",
}

_TITLE_WIDTH = 44
"""Maximum number of letters per line of an axis title, for phones."""

_BAND, _EDGE = "rgba(128,128,128,0.16)", "rgba(128,128,128,0.9)"


def _draw_edge(figure: go.Figure, edge: Frontier) -> None:
    """Draw the frontier of significantly reached settings, and the band beyond it, in a figure."""
    if len(edge.surely) < 2:
        return
    corner = (edge.perhaps[-1][0], edge.surely[-1][1])
    band = _svg_path([*edge.surely, corner, *reversed(edge.perhaps)]) + " Z"
    common = {
        "type": "path",
        "layer": "below",
        "xref": "x",
        "yref": "y",
        "showlegend": True,
        "legendrank": 1,
    }
    figure.add_shape(
        path=band,
        fillcolor=_BAND,
        line={"width": 0},
        name="the best setting lies in this band",
        **common,
    )
    figure.add_shape(
        path=_svg_path(edge.surely),
        line={"color": _EDGE, "width": 2, "dash": "dash"},
        name="lowest leakage that a setting reached",
        **common,
    )


def _svg_path(corners: list[Ends] | tuple[Ends, ...]) -> str:
    """Convert corner points to an SVG path."""
    return "M " + " L ".join(f"{useful:.4f},{leaks:.4f}" for useful, leaks in corners)


def _add_ring(figure: go.Figure, point: Point, task: str, reads: str, letter: str) -> None:
    """Draw a ring around a chosen point in a figure, and name it in the legend."""
    comma = "" if point.label.startswith("to ") else ","
    title = f"{entry_shown(point.defence).title}{comma} {point.label}".rstrip(" ,")
    figure.add_scatter(
        x=[point.utility[task].value],
        y=[leak_of(point, reads).value],
        mode="markers+text",
        text=[f"<b>{letter}</b>"],
        textposition="top left" if letter == "A" else "top right",
        textfont={"size": 15},
        marker={"size": 22, "symbol": "circle-open", "color": BASELINE, "line": {"width": 3}},
        hoverinfo="skip",
        name=f"ring {letter}: {title}",
        legendrank=1,
    )


def _label_readable(
    figure: go.Figure, points: list[Point], base: Point, task: str, reads: str
) -> None:
    """Mark the points of a figure whose readable release leaks more than no defence."""
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
            name=f"{READABLE_MARK}: {READABLE} that leaks more than no defence",
            legendrank=2,
        )


def _defence_style(name: str) -> Look:
    """Return the colour and symbol of a named defence or chain; grey if it is unknown."""
    try:
        return look_of_defence(name)
    except InvalidInputError:
        looks = {**marker_styles(TRAINED_DEFENCES), **marker_styles(DEFENCES)}
    first, last = stages_of(name)[0], stages_of(name)[-1]
    if first not in looks or last not in looks:
        return Look(BASELINE, "circle-open")
    return Look(looks[first].colour, looks[last].symbol)


def _add_line(
    figure: go.Figure,
    members: list[tuple[int, Point]],
    axes: tuple[str, str],
    shown: tuple[str, str],
    *,
    is_timed: bool,
    has_names: bool,
) -> None:
    """Add a line with the points of one defence to a figure."""
    (task, reads), (title, dash), name = axes, shown, members[0][1].defence
    colour, symbol = _defence_style(name)
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
        customdata=[
            [i, point.label or title, *_hover_details(point, reads)] for i, point in members
        ],
        hovertemplate=f"{title}, %{{customdata[1]}}<br>utility %{{x:.1f}}, leakage "
        "%{y:.1f}<br>strongest attacker: "
        "%{customdata[2]}<br>%{customdata[3]}%{customdata[4]}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _hover_details(point: Point, reads: str) -> tuple[str, str, str]:
    """Return three hover texts of a point: strongest attacker, cost and provenance."""
    strongest = point.strongest(reads)
    training, a_text = describe_minutes(point), describe_milliseconds(point)
    cost = f"training: {training}; per text: {a_text}" if training != a_text else training
    by = format_attacker(strongest[0]) if strongest else ""
    return by, cost, hover_line(point.provenances)


def _draw_chance(figure: go.Figure, base: Point, task: str, reads: str) -> None:
    """Draw the chance level on both axes of a figure, where it is known."""
    useless, blind = base.utility[task].chance, leak_of(base, reads).chance
    if not math.isnan(useless):
        figure.add_vline(x=useless, line=DOTTED)
        figure.add_annotation(
            x=useless,
            y=1,
            yref="paper",
            xanchor="left",
            yanchor="top",
            text=f"guessing {useless:.0f}",
            showarrow=False,
        )
    if not math.isnan(blind):
        figure.add_hline(y=blind, line=DOTTED)
        figure.add_annotation(
            x=1,
            xref="paper",
            xanchor="right",
            y=blind,
            yanchor="bottom",
            text=f"guessing without the vector {blind:.0f}",
            showarrow=False,
        )
