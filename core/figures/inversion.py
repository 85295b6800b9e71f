"""Figures of inversion attacks: word scores, attack comparison, shipped results, the vector.

Backgrounds are transparent and text has no colour, so that the page's theme applies. A shape,
pattern or symbol repeats what each colour shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.figures.style import (
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
from leakscope.core.protocols import Vectors
from leakscope.core.results import RecoveredWord, Score


def word_scores(reading: Reading, *, n_nearly: int = 3) -> go.Figure:
    """Return a figure with the score of each answered word, and of a few narrowly missed.

    Parameters
    ----------
    n_nearly : int
        The most words of the text to show, hollow, that the attack ranked next but did not answer.
    """
    nearly = [w for w in reading.recovery.runners_up if w.word in reading.targets][:n_nearly]
    hits = {w.word for w in reading.hits}
    figure = go.Figure()
    _add_bars(figure, [w for w in reading.recovery.words if w.word in hits], "recovered")
    _add_bars(figure, [w for w in reading.recovery.words if w.word not in hits], "wrong answer")
    _add_bars(figure, nearly, "in the text, not answered")
    labels = [
        _label(w, "recovered" if w.word in hits else "wrong answer") for w in reading.recovery.words
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
    "wrong answer": (
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
    """Return a recovered word with the symbol of its outcome (such as right or wrong)."""
    return f"{escape(found.word)} {_BARS[outcome][0]}"


def _add_bars(figure: go.Figure, found: Sequence[RecoveredWord], outcome: str) -> None:
    """Add bars to a figure for the scores of words with the same outcome."""
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
    """Return a figure of each attack's precision, recall and F1 beside the F1 of guessing.

    An attack whose vocabulary contains no word of the text has no marks.
    """
    names = [attack_label(reading.attack) for reading in readings]
    scored = [(n, r) for n, r in zip(names, readings, strict=True) if r.targets]
    figure = go.Figure()
    if scored:
        _add_precision_recall(figure, *zip(*scored, strict=True))
        _add_f1(figure, *zip(*scored, strict=True))
    _add_unscored(figure, [n for n, r in zip(names, readings, strict=True) if not r.targets])
    style(figure, height=134 + 52 * len(names))
    figure.update_layout(
        title={"text": "<b>Words recovered, by attack</b>"},
        showlegend=False,
        margin={"t": 48, "b": 86},
    )
    # The legend is the axis title: it stays readable on a telephone and in a saved figure.
    legend = "filled: F1   ◇ precision   ❘ recall<br>⊙ guessing (F1)"
    figure.update_xaxes(
        range=[0, 100],
        gridcolor=GRID,
        zeroline=False,
        dtick=25,
        title={"text": f"{legend}<br>0: no word, 100: every word and no wrong answer"},
    )
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=names[::-1],
        automargin=True,
        range=[-0.5, len(names) - 0.35],
    )
    return figure


def _add_unscored(figure: go.Figure, names: Sequence[str]) -> None:
    """Write "not scored" into the figure for attacks that know no word of the text."""
    if names:
        figure.add_scatter(
            x=[50] * len(names),
            y=names,
            mode="text",
            text=["not scored: no evidence of safety"] * len(names),
            hoverinfo="skip",
        )


def _add_precision_recall(
    figure: go.Figure, names: Sequence[str], readings: Sequence[Reading]
) -> None:
    """Add a line per attack to a figure, from its precision to its recall."""
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
    """Add markers of each attack's F1, and of the F1 of guessing, to a figure."""
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
        name="F1 of guessing",
        marker={"symbol": "circle-open-dot", "size": 12, "color": BASELINE, "line": {"width": 2}},
        cliponaxis=False,
        hovertemplate="guessing: F1 %{x:.0f}<extra></extra>",
    )


def shipped_scores(scores: Mapping[str, Score]) -> go.Figure:
    """Return a figure of each shipped attack's held-out F1 with interval, and of guessing.

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
    _annotate_f1(figure, names, f1)
    style(figure, height=100 + 38 * len(names))
    figure.update_layout(margin={"t": 34, "b": 44}, bargap=0.45)
    figure.update_xaxes(
        range=[0, 100],
        title="F1 of recovered words",
        gridcolor=GRID,
        dtick=25,
    )
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True)
    return figure


def _annotate_f1(figure: go.Figure, names: Sequence[str], f1: Sequence[Score]) -> None:
    """Write F1, and n where it differs, beside each bar of a figure; add the line of guessing."""
    is_same_n = len({score.n for score in f1}) == 1
    for score, name in zip(f1, names, strict=True):
        n = "" if is_same_n else f", n = {score.n:,}"
        figure.add_annotation(
            x=score.ci95.high,
            y=name,
            text=f"<b>F1 {score.value:.0f}</b>{n}",
            hovertext=f"F1 {score.in_text()}",
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
        text=f"guessing: F1 {guess:.0f}",
        showarrow=False,
        xanchor="left",
    )


def vector_strip(vector: Vectors, *, n_rows: int = 4) -> go.Figure:
    """Return a figure that shows the components of one vector as a strip of coloured cells."""
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
