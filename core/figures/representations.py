"""Figures of encoders: leakage against utility."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import plotly.graph_objects as go

from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.corpora import CORPORA
from leakscope.core.encoders import ENCODERS
from leakscope.core.figures.label_places import MARKER, Box, place_labels
from leakscope.core.figures.style import (
    BASELINE,
    BELOW,
    GRID,
    LEAKED,
    attack_look,
    error_bars,
    hover_line,
    style,
)
from leakscope.core.registry import marker_style
from leakscope.core.results import Score
from leakscope.core.studies.inversion.own_encoder import OwnLeak
from leakscope.core.studies.inversion.representation_order import PaperPoint, strongest
from leakscope.core.studies.inversion.representation_summary import YOURS, Point

_TITLE_WIDTH = 44
"""Maximum number of letters per line of an axis title, for phones."""
_BARS = "rgba(128,128,128,0.75)"
_INITIALS = re.compile(r"[b-df-hj-np-tv-xz]{2,3}")

_PAPER_NAMES = {"minilm": "Sentence-BERT"}
"""The thesis's encoder where ours is a different one of the same kind."""


def encoder_title(name: str) -> str:
    """Return a named encoder's title without a comma, for sentences and lists.

    Examples
    --------
    >>> encoder_title("lsa_tfidf"), encoder_title("tfidf"), encoder_title("st:a-model")
    ('LSA on tf-idf', 'Bag of words (tf-idf)', 'st:a-model')
    """
    if name not in ENCODERS:
        return name
    title, _, kind = ENCODERS[name].title.partition(", ")
    return f"{title} ({kind})" if kind else title


def collection_title(name: str) -> str:
    """Return a named corpus's title for a sentence; for a file, the words of its name.

    Words of two or three letters without a vowel are treated as initials.

    Examples
    --------
    >>> collection_title("bbc_news.parquet"), collection_title("wikipedia")
    ('BBC news', 'Wikipedia extract')
    """
    if name in CORPORA:
        return CORPORA[name].title
    words = Path(name).stem.replace("_", " ").replace("-", " ").split()
    return " ".join(w.upper() if _INITIALS.fullmatch(w) else w for w in words) or name


def representations_figure(
    points: Sequence[Point], paper: Sequence[PaperPoint] = (), *, view: str = ""
) -> go.Figure:
    """Plot leakage over utility, with a colour for each encoder and a symbol for each attack.

    The user's own encoders are larger and have a blue frame.

    Parameters
    ----------
    points : sequence of Point
        Those without a measured utility are left out.
    paper : sequence of PaperPoint
        Drawn as hollow diamonds.
    view : str
        What is sorted, for the axis.
    """
    figure = go.Figure()
    shown = [(point, point.useful) for point in points if point.useful]
    for attack in dict.fromkeys(point.leak.attack for point, _ in shown):
        _add_attack(figure, attack, [(p, u) for p, u in shown if p.leak.attack == attack])
    if paper:
        _add_paper(figure, paper)
    style(figure, height=540)
    (left, right), top = _axis_ranges(shown, paper)
    _add_names(figure, [p for p, _ in shown], paper, (left, right, top))
    chance = [point.leak.f1.chance for point, _ in shown]
    if chance:
        _draw_baseline(figure, max(chance), is_one=max(chance) - min(chance) < 0.1)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 8, "t": 16, "b": 10},
    )
    figure.update_xaxes(
        title="<br>".join(wrap(f"utility: {view}sorted by topic, macro-F1 →", _TITLE_WIDTH)),
        gridcolor=GRID,
        zeroline=False,
        range=[left, right],
    )
    figure.update_yaxes(
        title="leaks: words recovered, F1 →", gridcolor=GRID, zeroline=False, range=[0, top]
    )
    return figure


def own_leaks_figure(found: Sequence[OwnLeak]) -> go.Figure:
    """Plot what a quick attack recovers from the user's and bundled encoders, with intervals."""
    names = [encoder_title(leak.encoder) for leak in found]
    figure = go.Figure(
        go.Bar(
            x=[leak.f1.value for leak in found],
            y=names,
            orientation="h",
            marker={"color": LEAKED},
            error_x=error_bars([leak.f1 for leak in found], BASELINE, thickness=2, width=5),
            hovertemplate="%{y}: F1 %{x:.1f}<extra></extra>",
            showlegend=False,
        )
    )
    figure.add_vline(x=found[0].f1.chance, line={"dash": "dot", "color": BASELINE})
    style(figure, height=100 + 44 * len(names))
    figure.update_layout(margin={"t": 20, "b": 44}, bargap=0.45)
    figure.update_xaxes(range=[0, 100], title="F1 of the recovered words", dtick=25, gridcolor=GRID)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True)
    return figure


def _add_attack(figure: go.Figure, attack: str, members: list[tuple[Point, Score]]) -> None:
    """Add the points of one attack to a figure: leakage over utility."""
    title = INVERSION_ATTACKS[attack].title
    leaks, useful = [p.leak.f1 for p, _ in members], [score for _, score in members]
    names = [p.leak.encoder for p, _ in members]
    origins = [hover_line(p.leak.provenances) for p, _ in members]
    # The legend shows attacks by their symbols only, in grey.
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="markers",
        name=title,
        legendgroup=attack,
        marker={"symbol": attack_look(attack).symbol, "size": 11, "color": BASELINE},
    )
    figure.add_scatter(
        x=[score.value for score in useful],
        y=[score.value for score in leaks],
        error_x=error_bars(useful, _BARS, thickness=1.2),
        error_y=error_bars(leaks, _BARS, thickness=1.2),
        mode="markers",
        name=title,
        legendgroup=attack,
        showlegend=False,
        marker={
            "symbol": attack_look(attack).symbol,
            "size": [18 if name.startswith(YOURS) else 12 for name in names],
            "color": [_name_and_colour(name)[1] for name in names],
            "line": {
                "width": [3 if name.startswith(YOURS) else 1 for name in names],
                "color": [
                    "#0072B2" if name.startswith(YOURS) else "rgba(128,128,128,0.6)"
                    for name in names
                ],
            },
        },
        customdata=[
            [encoder_title(name), useful_.format(), useful_.n, leak.format(), leak.n, told]
            for name, useful_, leak, told in zip(names, useful, leaks, origins, strict=True)
        ],
        hovertemplate=f"%{{customdata[0]}}, {title}<br>utility %{{customdata[1]}}, "
        "n = %{customdata[2]}<br>leaks %{customdata[3]}, n = %{customdata[4]}%{customdata[5]}"
        "<extra></extra>",
    )


def _add_paper(figure: go.Figure, paper: Sequence[PaperPoint]) -> None:
    """Add the thesis's points to a figure as hollow diamonds."""
    figure.add_scatter(
        x=[point.useful for point in paper],
        y=[point.leak for point in paper],
        mode="markers",
        name="Corò (2022), other texts: multi-set prediction",
        marker={
            "symbol": "diamond-open",
            "size": 11,
            "color": [_name_and_colour(point.encoder)[1] for point in paper],
            "line": {"width": 2},
        },
        customdata=[_PAPER_NAMES.get(p.encoder, encoder_title(p.encoder)) for p in paper],
        hovertemplate="Corò (2022), %{customdata}<br>utility %{x:.1f}, leaks %{y:.1f}"
        "<extra></extra>",
    )


def _add_names(
    figure: go.Figure,
    points: Sequence[Point],
    paper: Sequence[PaperPoint],
    frame: tuple[float, float, float],
) -> None:
    """Write each encoder's name into a figure, at its highest point and at the thesis's point."""
    tops = strongest(points)
    ours = [(p.useful.value, p.leak.f1.value, p.leak.encoder) for p in tops if p.useful]
    theirs = [(p.useful, p.leak, p.encoder) for p in paper]
    places = [_figure_position(x, y, frame) for x, y, _ in (*ours, *theirs)]
    labels = [_name_and_colour(name)[0] for *_, name in ours]
    labels += [_PAPER_NAMES.get(name, _name_and_colour(name)[0]) for *_, name in theirs]
    sides = place_labels(places, labels, [box for p in points for box in _point_boxes(p, frame)])
    n = len(ours)
    _add_texts(figure, ours, labels[:n], sides[:n], size=13)
    _add_texts(figure, theirs, [f"<i>{label}</i>" for label in labels[n:]], sides[n:], size=11)


def _add_texts(
    figure: go.Figure,
    places: Sequence[tuple[float, float, str]],
    labels: Sequence[str],
    sides: Sequence[str],
    *,
    size: int,
) -> None:
    """Write text labels beside points of a figure."""
    # Invisible markers keep the text off the visible ones.
    figure.add_scatter(
        x=[x for x, *_ in places],
        y=[y for _, y, _ in places],
        mode="markers+text",
        text=labels,
        textposition=sides,
        textfont={"size": size},
        marker={"size": 13, "opacity": 0},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
    )


def _figure_position(x: float, y: float, frame: tuple[float, float, float]) -> tuple[float, float]:
    """Convert a point's coordinates to shares of the figure's width and height."""
    left, right, top = frame
    return (x - left) / (right - left), y / top


def _point_boxes(point: Point, frame: tuple[float, float, float]) -> list[Box]:
    """Return the boxes that a point and its error bars cover, as shares of the figure."""
    if point.useful is None:
        return []
    leak, useful = point.leak.f1, point.useful
    x, y = _figure_position(useful.value, leak.value, frame)
    left, bottom = _figure_position(useful.ci95.low, leak.ci95.low, frame)
    right, top = _figure_position(useful.ci95.high, leak.ci95.high, frame)
    half, tall = MARKER
    return [
        (x - half, y - tall, x + half, y + tall),
        (left, y - 0.004, right, y + 0.004),
        (x - 0.005, bottom, x + 0.005, top),
    ]


def _axis_ranges(
    shown: Sequence[tuple[Point, Score]], paper: Sequence[PaperPoint]
) -> tuple[tuple[float, float], float]:
    """Return the x-axis range, and the top of the y-axis, that hold all points and intervals."""
    xs = [v for _, score in shown for v in (score.ci95.low, score.ci95.high)]
    xs += [point.useful for point in paper]
    ys = [point.leak.f1.ci95.high for point, _ in shown] + [point.leak for point in paper]
    low, high = min(xs, default=0.0), max(xs, default=100.0)
    pad = max(1.5, 0.09 * (high - low))
    return (low - pad, min(high + pad, 104)), max(ys, default=100.0) * 1.1 + 1


def _draw_baseline(figure: go.Figure, chance: float, *, is_one: bool) -> None:
    """Draw the F1 of guessing without the vector as a dotted line in a figure."""
    figure.add_hline(y=chance, line={"color": BASELINE, "dash": "dot", "width": 1.5})
    figure.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=chance,
        yanchor="bottom",
        showarrow=False,
        text=f"guessing without the vector: {'' if is_one else 'up to '}{chance:.1f}",
    )


def _name_and_colour(name: str) -> tuple[str, str]:
    """Return the short title and the colour of a named encoder."""
    entry = ENCODERS.get(name)
    if entry is None:
        return name, BASELINE
    return entry.label or entry.title, marker_style(ENCODERS, name).colour
