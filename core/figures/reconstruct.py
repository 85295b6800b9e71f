"""Figures of sentence reconstruction, by query budget or by defence."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from leakscope.core.defences.setting import entry_shown, strength
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.figures.style import BASELINE, error_bars, style
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.studies.inversion.reconstruct_tables import by_reader

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7")
_SHAPES = ("circle", "diamond", "square", "cross", "star")
_BLIND = "without the vector"
_APART = 0.04
"""Horizontal offset between neighbouring lines, in steps of the query axis."""
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def curves(rows: Sequence[Row]) -> dict[str, list[tuple[int, Score]]]:
    """Group rows' ROUGE-L into a curve of (queries, score) per sentence length and defence."""
    found: dict[str, dict[int, Score]] = {}
    for (defence, reader, budget), own in by_reader(rows).items():
        if reader != "reconstruct":
            continue
        for row in own:
            behind = "" if defence == "none" else f", {defence}"
            name = f"{row['length']} words{behind}"
            found.setdefault(name, {})[budget] = row.scores["rouge_l"]
    return {name: sorted(points.items()) for name, points in found.items()}


def reconstruct_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot rows' ROUGE-L by query budget, or by defence if the rows have several."""
    if len({row["guarded_by"] for row in rows if not row.error}) > 1:
        return defended_figure(rows)
    figure = _plot_by_queries(curves(rows))
    figure.update_layout(
        title="Reconstructed sentences, by number of queries"
        "<br><sup>ROUGE-L ×100 with 95 % CI; 100 is the sentence word for word</sup>",
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 80},
    )
    return figure


def grown_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot rows' ROUGE-L by query budget for a page; guessing without the vector is dotted."""
    figure = _plot_by_queries(curves(rows))
    guessed = [row.scores["rouge_l"].value for row in rows if row["reader"] == "blind"]
    if guessed:
        label = {
            "text": f"{_BLIND}: at most {max(guessed):.0f}",
            "showarrow": False,
            "yanchor": "bottom",
        }
        figure.add_hline(max(guessed), line={"color": BASELINE, "dash": "dot"}, annotation=label)
    style(figure, height=400)
    figure.update_yaxes(title="ROUGE-L, 100: word for word", range=[0, 100])
    return figure


def _plot_by_queries(found: dict[str, list[tuple[int, Score]]]) -> go.Figure:
    """Return a figure with each curve of (queries, score) as a slightly shifted line."""
    figure = go.Figure()
    budgets = sorted({budget for curve in found.values() for budget, _ in curve})
    for i, (name, curve) in enumerate(found.items()):
        n = len(_COLOURS)
        figure.add_scatter(
            x=[budgets.index(budget) + _APART * i for budget, _ in curve],
            y=[score.value for _, score in curve],
            name=name,
            mode="lines+markers",
            line={"color": _COLOURS[i % n], "width": 2, "dash": _DASHES[i % n]},
            marker={"symbol": _SHAPES[i % n], "size": 9},
            error_y=error_bars([score for _, score in curve]),
            customdata=[[f"{budget:,}", score.format()] for budget, score in curve],
            hovertemplate=f"%{{customdata[0]}} queries: %{{customdata[1]}}<extra>{name}</extra>",
        )
    figure.update_layout(
        xaxis={
            "title": "queries per sentence",
            "tickvals": list(range(len(budgets))),
            "ticktext": [f"{n:,}" for n in budgets],
        },
        yaxis={"title": "ROUGE-L", "rangemode": "tozero"},
        legend={"orientation": "h", "y": -0.25},
    )
    return figure


def defended(rows: Sequence[Row]) -> dict[str, list[tuple[str, Score]]]:
    """Group rows' ROUGE-L into (defence, score) series, by sentence length and query budget."""
    found: dict[str, list[tuple[str, Score]]] = {}
    for row in rows:
        if row.error or row["reader"] not in ("reconstruct", "blind"):
            continue
        budget = f"{row['budget']:,} queries" if row["reader"] == "reconstruct" else _BLIND
        name = f"{row['length']} words, {budget}"
        found.setdefault(name, []).append(
            (_defence_title(row["guarded_by"]), row.scores["rouge_l"])
        )
    return found


def _defence_title(defence: str) -> str:
    """Return the title and strength of a defence, given as a spec text."""
    if defence == "none":
        return "No defence"
    spec = read_defence(defence)
    setting = strength(spec.name, dict(spec.settings))
    return ", ".join(filter(None, (entry_shown(spec.name).title, setting)))


def defended_figure(rows: Sequence[Row]) -> go.Figure:
    """Plot rows' ROUGE-L with its 95 % CI by defence; guessing without the vector is dotted."""
    figure = go.Figure()
    for i, (name, points) in enumerate(defended(rows).items()):
        is_blind, n = name.endswith(_BLIND), len(_COLOURS)
        colour = BASELINE if is_blind else _COLOURS[i % n]
        figure.add_scatter(
            x=[score.value for _, score in points],
            y=[title for title, _ in points],
            name=name,
            mode="lines" if is_blind else "markers",
            line={"color": colour, "width": 2, "dash": "dot"},
            marker={"symbol": _SHAPES[i % n], "size": 9, "color": colour},
            error_x=None if is_blind else error_bars([score for _, score in points]),
        )
    figure.update_layout(
        title="Sentences reconstructed from defended vectors; the attacker knows the defence"
        "<br><sup>ROUGE-L ×100 with 95 % CI; 100 is the sentence word for word</sup>",
        xaxis={"title": "ROUGE-L", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "automargin": True},
        legend={"orientation": "h", "y": -0.2},
        template="plotly_white",
        margin={"l": 60, "r": 30, "t": 80, "b": 80},
    )
    return figure
