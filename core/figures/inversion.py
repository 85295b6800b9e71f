"""Results as Plotly figures: one visual language, no computing, readable on light and dark.

Backgrounds are transparent and text has no colour of its own, so that the page's theme rules.
Colour never speaks alone: filled or hollow, hatched or plain, or a glyph says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from core.attacks.inversion.reading import Reading
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.figures.style import (
    BASELINE,
    GRID,
    LEAKED,
    MISSED,
    WRONG,
    attack_label,
    attack_look,
    error_bars,
    style,
)
from core.protocols import Vectors
from core.results import RecoveredWord, Score

__all__ = ["scores_beside_prior", "shipped_scores", "vector_strip", "word_scores"]


def word_scores(reading: Reading, *, n_nearly: int = 3) -> go.Figure:
    """Return a bar for each answered word in the order chosen, then words that nearly made it.

    Parameters
    ----------
    n_nearly : int
        At most so many words of the text among those that the attack did not answer, hollow.
    """
    nearly = [w for w in reading.recovery.runners_up if w.word in reading.targets][:n_nearly]
    hits = {w.word for w in reading.hits}
    figure = go.Figure()
    _add_bars(figure, [w for w in reading.recovery.words if w.word in hits], "recovered")
    _add_bars(figure, [w for w in reading.recovery.words if w.word not in hits], "wrong guess")
    _add_bars(figure, nearly, "in the text, not answered")
    labels = [
        _label(w, "recovered" if w.word in hits else "wrong guess") for w in reading.recovery.words
    ]
    labels += [_label(w, "in the text, not answered") for w in nearly]
    style(figure, height=26 * len(labels))
    meaning = "<br>".join(wrap(INVERSION_ATTACKS[reading.attack].score.capitalize(), 44))
    title_height = 68 + 17 * meaning.count("<br>")
    figure.update_layout(
        title={
            "text": f"<b>Score of each word</b><br><sup>{meaning}</sup>",
            "y": 1,
            "yanchor": "top",
            "pad": {"t": 16},
        },
        margin={"t": title_height, "b": 30},
        height=title_height + 30 + 26 * len(labels),
        bargap=0.28,
        showlegend=False,
    )
    figure.update_xaxes(rangemode="tozero", showgrid=True, gridcolor=GRID, nticks=5)
    figure.update_yaxes(
        categoryorder="array", categoryarray=labels[::-1], automargin=True, ticklabelstandoff=4
    )
    return figure


_BARS: dict[str, tuple[str, dict[str, Any]]] = {
    "recovered": ("●", {"color": LEAKED}),
    "wrong guess": (
        "✕",
        {
            "color": "rgba(138,143,150,0.25)",
            "line": {"color": WRONG, "width": 1},
            "pattern": {"shape": "/", "fgcolor": WRONG, "size": 5},
        },
    ),
    "in the text, not answered": (
        "○",
        {"color": "rgba(0,0,0,0)", "line": {"color": MISSED, "width": 2}},
    ),
}


def _label(found: RecoveredWord, outcome: str) -> str:
    return f"{escape(found.word)} {_BARS[outcome][0]}"


def _add_bars(figure: go.Figure, found: Sequence[RecoveredWord], outcome: str) -> None:
    figure.add_bar(
        x=[w.score for w in found],
        y=[_label(w, outcome) for w in found],
        orientation="h",
        name=outcome,
        marker=_BARS[outcome][1],
        text=[f"{w.score:.2f}" for w in found],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.3f} (" + outcome + ")<extra></extra>",
    )


def scores_beside_prior(readings: Sequence[Reading]) -> go.Figure:
    """Return, for each attack, precision, recall and F1, and the F1 of pure guessing dotted.

    An attack that can name no word of the text has no marks.
    """
    names = [attack_label(reading.attack) for reading in readings]
    scored = [(n, r) for n, r in zip(names, readings, strict=True) if r.targets]
    figure = go.Figure()
    if scored:
        _add_ends(figure, *zip(*scored, strict=True))
        _add_f1(figure, *zip(*scored, strict=True))
    _add_unscored(figure, [n for n, r in zip(names, readings, strict=True) if not r.targets])
    style(figure, height=134 + 52 * len(names))
    figure.update_layout(
        title={"text": "<b>Words read, by attack</b>"}, showlegend=False, margin={"t": 48, "b": 86}
    )
    # The legend is the axis title: it stays readable on a telephone and in a saved figure.
    told = "filled: F1   ◇ precision   ❘ recall<br>⊙ guessing (F1)"
    figure.update_xaxes(
        range=[0, 100],
        gridcolor=GRID,
        zeroline=False,
        dtick=25,
        title={"text": f"{told}<br>0 = no word, 100 = every word and no other"},
    )
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=names[::-1],
        automargin=True,
        range=[-0.5, len(names) - 0.35],
    )
    return figure


def _add_unscored(figure: go.Figure, names: Sequence[str]) -> None:
    """Say of an attack that can name no word of the text that it was not scored: 0 is a score."""
    if names:
        figure.add_scatter(
            x=[50] * len(names),
            y=names,
            mode="text",
            text=["not scored: no evidence of safety"] * len(names),
            hoverinfo="skip",
        )


def _add_ends(figure: go.Figure, names: Sequence[str], readings: Sequence[Reading]) -> None:
    """Draw precision and recall as the ends of a line, in the attack's colour."""
    for name, reading in zip(names, readings, strict=True):
        ends = [reading.scores.precision, reading.scores.recall]
        figure.add_scatter(
            x=[min(ends), max(ends)],
            y=[name, name],
            mode="lines",
            hoverinfo="skip",
            line={"color": attack_look(reading.attack).colour, "width": 3},
            showlegend=False,
        )
    for title, symbol, values in (
        ("recall", "line-ns-open", [r.scores.recall for r in readings]),
        ("precision", "diamond-open", [r.scores.precision for r in readings]),
    ):
        figure.add_scatter(
            x=values,
            y=names,
            mode="markers",
            name=title,
            cliponaxis=False,
            marker={"symbol": symbol, "size": 13, "color": WRONG, "line": {"width": 2.5}},
            hovertemplate="%{y}: " + title + " %{x:.0f}<extra></extra>",
        )


def _add_f1(figure: go.Figure, names: Sequence[str], readings: Sequence[Reading]) -> None:
    """Draw the F1 of each attack in its look, and that of guessing alone."""
    looks = [attack_look(reading.attack) for reading in readings]
    figure.add_scatter(
        x=[r.scores.f1 for r in readings],
        y=names,
        mode="markers+text",
        name="F1",
        marker={
            "symbol": [look.symbol for look in looks],
            "size": 16,
            "color": [look.colour for look in looks],
        },
        text=[f"<b>{r.scores.f1:.0f}</b>" for r in readings],
        textposition="top center",
        cliponaxis=False,
        hovertemplate="%{y}: F1 %{x:.0f}<extra></extra>",
    )
    figure.add_scatter(
        x=[r.prior.f1 for r in readings],
        y=names,
        mode="markers",
        name="F1 of guessing alone",
        marker={"symbol": "circle-open-dot", "size": 12, "color": BASELINE, "line": {"width": 2}},
        cliponaxis=False,
        hovertemplate="guessing alone: F1 %{x:.0f}<extra></extra>",
    )


def shipped_scores(scores: Mapping[str, Score]) -> go.Figure:
    """Return the held-out F1 of each shipped attack with its interval, guessing alone dotted.

    Bars, their labels and guessing are all an F1: one figure has one scale.

    Parameters
    ----------
    scores : mapping
        Attack name to its F1.
    """
    names = [attack_label(name) for name in scores]
    f1 = list(scores.values())
    colours = [attack_look(name).colour for name in scores]
    figure = go.Figure(
        go.Bar(
            x=[score.value for score in f1],
            y=names,
            orientation="h",
            marker={"color": colours},
            showlegend=False,
            error_x=error_bars(f1, BASELINE, thickness=2, width=5),
            hovertemplate="%{y}: F1 %{x:.1f}<extra></extra>",
        )
    )
    _say_f1(figure, names, f1)
    style(figure, height=100 + 38 * len(names))
    figure.update_layout(margin={"t": 34, "b": 44}, bargap=0.45)
    figure.update_xaxes(
        range=[0, 100],
        title="F1 of the words read",
        gridcolor=GRID,
        dtick=25,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True)
    return figure


def _say_f1(figure: go.Figure, names: Sequence[str], f1: Sequence[Score]) -> None:
    """Write beside each bar its F1, and its n where that is not all bars'; and what guessing is."""
    is_alike = len({score.n for score in f1}) == 1
    for score, name in zip(f1, names, strict=True):
        n = "" if is_alike else f", n = {score.n:,}"
        figure.add_annotation(
            x=score.ci95.high,
            y=name,
            text=f"<b>F1 {score.value:.0f}</b>{n}",
            hovertext=f"F1 {score.said()}",
            showarrow=False,
            xanchor="left",
            xshift=6,
        )
    guess = float(np.mean([score.chance for score in f1]))
    figure.add_vline(x=guess, line={"dash": "dot", "color": BASELINE, "width": 2})
    figure.add_annotation(
        x=guess,
        y=1.0,
        yref="paper",
        yanchor="bottom",
        text=f"guessing alone: F1 {guess:.0f}",
        showarrow=False,
        xanchor="left",
    )


def vector_strip(vector: Vectors, *, n_rows: int = 4) -> go.Figure:
    """Return the numbers of one embedding as a strip of coloured cells, `n_rows` deep."""
    values = np.asarray(vector, dtype=np.float32).ravel()
    width = -(-len(values) // n_rows)
    cells = np.full(n_rows * width, np.nan, dtype=np.float32)
    cells[: len(values)] = values
    bound = float(np.abs(values).max()) or 1.0
    positions = np.arange(n_rows * width).reshape(n_rows, width)
    figure = go.Figure(
        go.Heatmap(
            z=cells.reshape(n_rows, width),
            zmin=-bound,
            zmax=bound,
            colorscale="Cividis",
            customdata=positions + 1,
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="number %{customdata}: %{z:.3f}<extra></extra>",
        )
    )
    style(figure, height=16 * n_rows + 4)
    figure.update_layout(margin={"l": 0, "r": 0, "t": 2, "b": 2})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, autorange="reversed")
    return figure
