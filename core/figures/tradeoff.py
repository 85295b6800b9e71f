"""Privacy against utility as a figure: computes nothing."""

from __future__ import annotations

import plotly.graph_objects as go

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.defences.registry import entry_of, look_of_defence
from core.figures.style import BASELINE, GRID, error_bars, hover_line, style
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said

__all__ = ["attacker_said", "tradeoff_figure"]

_ATTACKERS = {
    "tuned": "tuned classifier",
    "search": "re-embedding search",
    "tokens": "reader of released tokens",
}


def attacker_said(name: str) -> str:
    """Return what an attacker of the study is called where people read it.

    Examples
    --------
    >>> attacker_said("search"), attacker_said("probe_mlc")
    ('re-embedding search', 'Probe-started classifier')
    """
    entry = INVERSION_ATTACKS.get(name)
    return _ATTACKERS.get(name, entry.title if entry else name)


def tradeoff_figure(
    found: Tradeoff, task: str, *, chosen: int | None = None, defences: tuple[str, ...] = ()
) -> go.Figure:
    """Return leakage over the utility of one task, a line a defence, strengths along it.

    Parameters
    ----------
    chosen : int, optional
        Index of the point to ring.
    defences : tuple of str
        Shown besides the undefended encoder; all by default.
    """
    figure = go.Figure()
    names = dict.fromkeys(p.defence for p in found.points)
    for name in [n for n in names if not defences or n in defences or entry_of(n).is_baseline]:
        members = [(i, p) for i, p in enumerate(found.points) if p.defence == name]
        _line(figure, name, members, task)
    _guessing(figure, found.undefended, task)
    if chosen is not None:
        _ring(figure, found.points[chosen], task)
    style(figure, height=520)
    figure.update_layout(
        legend={"orientation": "h", "yanchor": "top", "y": -0.16, "x": 0},
        margin={"l": 0, "r": 12, "t": 20, "b": 10},
        clickmode="event+select",
    )
    measure = found.measures.get(task, "")
    figure.update_xaxes(
        title=f"useful: {task_said(task)}, {_UNITS.get(measure, measure)} →",
        gridcolor=GRID,
        zeroline=False,
    )
    figure.update_yaxes(
        title="leaks: words recovered, F1 →", gridcolor=GRID, zeroline=False, rangemode="tozero"
    )
    return figure


_UNITS = {
    "accuracy": "accuracy, per cent",
    "spearman": "correlation with people, × 100",
    "recall@1": "found first, per cent",
}

_DOTTED = {"color": BASELINE, "dash": "dot", "width": 1.5}


def _ring(figure: go.Figure, point: Point, task: str) -> None:
    """Mark the point that was chosen."""
    figure.add_scatter(
        x=[point.utility[task].value],
        y=[point.leakage.value],
        mode="markers",
        marker={"size": 22, "symbol": "circle-open", "color": BASELINE, "line": {"width": 3}},
        hoverinfo="skip",
        showlegend=False,
    )


def _line(figure: go.Figure, name: str, members: list[tuple[int, Point]], task: str) -> None:
    colour, symbol = look_of_defence(name)
    faint = f"rgba{(*bytes.fromhex(colour[1:]), 0.35)}"
    useful = [point.utility[task] for _, point in members]
    leaks = [point.leakage for _, point in members]
    entry = entry_of(name)
    title, size = entry.title, 15 if entry.is_baseline else 10
    figure.add_scatter(
        x=[score.value for score in useful],
        y=[score.value for score in leaks],
        error_x=error_bars(useful, faint, width=0),
        error_y=error_bars(leaks, faint, width=0),
        mode="lines+markers",
        name=title,
        line={"color": colour, "width": 1.5},
        marker={"symbol": symbol, "size": size, "color": colour},
        customdata=[
            [i, point.label or title, attacker_said(point.attacker), hover_line(point.provenances)]
            for i, point in members
        ],
        hovertemplate=f"{title}, %{{customdata[1]}}<br>useful %{{x:.1f}}, leaks %{{y:.1f}}"
        "<br>to the %{customdata[2]}%{customdata[3]}<extra></extra>",
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )


def _guessing(figure: go.Figure, base: Point, task: str) -> None:
    """Draw what guessing reaches on either axis."""
    useless, blind = base.utility[task].chance, base.leakage.chance
    figure.add_vline(x=useless, line=_DOTTED)
    figure.add_hline(y=blind, line=_DOTTED)
    _corner(figure, useless, 1, f"chance {useless:.0f}", "left")
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
