"""Usefulness against leakage by encoder as a figure: computes nothing but where labels go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import plotly.graph_objects as go

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.corpora import CORPORA
from core.encoders import ENCODERS
from core.figures.label_places import MARKER, Box, place_labels
from core.figures.style import (
    BASELINE,
    BELOW,
    GRID,
    LEAKED,
    attack_look,
    error_bars,
    hover_line,
    style,
)
from core.registry import look_of
from core.results import Score
from core.studies.own_encoder import OwnLeak
from core.studies.representation_order import PaperPoint, strongest
from core.studies.representation_summary import YOURS, Point

__all__ = [
    "collection_title",
    "encoder_title",
    "own_leaks_figure",
    "representations_figure",
]

_TITLE_WIDTH = 44
"""Letters of a line that a telephone shows below a figure."""
_BARS = "rgba(128,128,128,0.75)"
_INITIALS = re.compile(r"[b-df-hj-np-tv-xz]{2,3}")

_PAPER_NAMES = {"minilm": "Sentence-BERT"}
"""What the thesis measured where ours is of its kind only."""


def encoder_title(name: str) -> str:
    """Return what an encoder is called in a sentence or a list: without a comma.

    Examples
    --------
    >>> encoder_title("lsa_tfidf"), encoder_title("tfidf"), encoder_title("st:a-model")
    ('LSA on tf-idf', 'Bag of words (tf-idf)', 'st:a-model')
    """
    if ":" in name:
        return name
    title, _, kind = ENCODERS[name].title.partition(", ")
    return f"{title} ({kind})" if kind else title


def collection_title(name: str) -> str:
    """Return what a collection is called in a sentence: of a file, the words of its name.

    Words of two or three letters without a vowel are taken for initials.

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
    """Return leakage over usefulness: a colour and a name an encoder, a symbol an attack.

    Encoders of the visitor's own are larger and have a blue frame.

    Parameters
    ----------
    points : sequence of Point
        Those without a usefulness are left out.
    paper : sequence of PaperPoint
        Drawn as hollow diamonds.
    view : str
        What is sorted, for the axis.
    """
    figure = go.Figure()
    shown = [(point, point.useful) for point in points if point.useful]
    for attack in dict.fromkeys(point.leak.attack for point, _ in shown):
        _attack(figure, attack, [(p, u) for p, u in shown if p.leak.attack == attack])
    if paper:
        _paper(figure, paper)
    style(figure, height=540)
    (left, right), top = _ranges(shown, paper)
    _names(figure, [p for p, _ in shown], paper, (left, right, top))
    chance = [point.leak.f1.chance for point, _ in shown]
    if chance:
        _baseline(figure, max(chance), is_one=max(chance) - min(chance) < 0.1)
    figure.update_layout(
        legend=BELOW,
        margin={"l": 0, "r": 8, "t": 16, "b": 10},
    )
    figure.update_xaxes(
        title="<br>".join(wrap(f"useful: {view}sorted by topic, macro-F1 →", _TITLE_WIDTH)),
        gridcolor=GRID,
        zeroline=False,
        range=[left, right],
    )
    figure.update_yaxes(
        title="leaks: words recovered, F1 →", gridcolor=GRID, zeroline=False, range=[0, top]
    )
    return figure


def own_leaks_figure(found: Sequence[OwnLeak]) -> go.Figure:
    """Return what a quick attack reads from encoders, with intervals; guessing alone is dotted."""
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
    figure.update_xaxes(range=[0, 100], title="F1 of the words read", dtick=25, gridcolor=GRID)
    figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], automargin=True)
    return figure


def _attack(figure: go.Figure, attack: str, members: list[tuple[Point, Score]]) -> None:
    title = INVERSION_ATTACKS[attack].title
    leaks, useful = [p.leak.f1 for p, _ in members], [score for _, score in members]
    names = [p.leak.encoder for p, _ in members]
    origins = [hover_line(p.leak.provenances) for p, _ in members]
    # The legend tells attacks by their symbols alone, in grey.
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
            "color": [_look(name)[1] for name in names],
            "line": {
                "width": [3 if name.startswith(YOURS) else 1 for name in names],
                "color": [
                    "#0072B2" if name.startswith(YOURS) else "rgba(128,128,128,0.6)"
                    for name in names
                ],
            },
        },
        customdata=[
            [encoder_title(name), useful_.said(), useful_.n, leak.said(), leak.n, told]
            for name, useful_, leak, told in zip(names, useful, leaks, origins, strict=True)
        ],
        hovertemplate=f"%{{customdata[0]}}, {title}<br>useful %{{customdata[1]}}, "
        "n = %{customdata[2]}<br>leaks %{customdata[3]}, n = %{customdata[4]}%{customdata[5]}"
        "<extra></extra>",
    )


def _paper(figure: go.Figure, paper: Sequence[PaperPoint]) -> None:
    figure.add_scatter(
        x=[point.useful for point in paper],
        y=[point.leak for point in paper],
        mode="markers",
        name="Corò (2022): other texts, multi-set prediction",
        marker={
            "symbol": "diamond-open",
            "size": 11,
            "color": [_look(point.encoder)[1] for point in paper],
            "line": {"width": 2},
        },
        customdata=[_PAPER_NAMES.get(p.encoder, encoder_title(p.encoder)) for p in paper],
        hovertemplate="Corò (2022), %{customdata}<br>useful %{x:.1f}, leaks %{y:.1f}"
        "<extra></extra>",
    )


def _names(
    figure: go.Figure,
    points: Sequence[Point],
    paper: Sequence[PaperPoint],
    frame: tuple[float, float, float],
) -> None:
    """Write each encoder's name at its highest point and at Corò's, where there is room."""
    tops = strongest(points)
    ours = [(p.useful.value, p.leak.f1.value, p.leak.encoder) for p in tops if p.useful]
    theirs = [(p.useful, p.leak, p.encoder) for p in paper]
    places = [_share(x, y, frame) for x, y, _ in (*ours, *theirs)]
    labels = [_look(name)[0] for *_, name in ours]
    labels += [_PAPER_NAMES.get(name, _look(name)[0]) for *_, name in theirs]
    sides = place_labels(places, labels, [box for p in points for box in _boxes(p, frame)])
    n = len(ours)
    _texts(figure, ours, labels[:n], sides[:n], size=13)
    _texts(figure, theirs, [f"<i>{label}</i>" for label in labels[n:]], sides[n:], size=11)


def _texts(
    figure: go.Figure,
    places: Sequence[tuple[float, float, str]],
    labels: Sequence[str],
    sides: Sequence[str],
    *,
    size: int,
) -> None:
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


def _share(x: float, y: float, frame: tuple[float, float, float]) -> tuple[float, float]:
    left, right, top = frame
    return (x - left) / (right - left), y / top


def _boxes(point: Point, frame: tuple[float, float, float]) -> list[Box]:
    """Return what a point and its intervals cover, in shares of the figure."""
    if point.useful is None:
        return []
    leak, useful = point.leak.f1, point.useful
    x, y = _share(useful.value, leak.value, frame)
    left, bottom = _share(useful.ci95.low, leak.ci95.low, frame)
    right, top = _share(useful.ci95.high, leak.ci95.high, frame)
    half, tall = MARKER
    return [
        (x - half, y - tall, x + half, y + tall),
        (left, y - 0.004, right, y + 0.004),
        (x - 0.005, bottom, x + 0.005, top),
    ]


def _ranges(
    shown: Sequence[tuple[Point, Score]], paper: Sequence[PaperPoint]
) -> tuple[tuple[float, float], float]:
    xs = [v for _, score in shown for v in (score.ci95.low, score.ci95.high)]
    xs += [point.useful for point in paper]
    ys = [point.leak.f1.ci95.high for point, _ in shown] + [point.leak for point in paper]
    low, high = min(xs, default=0.0), max(xs, default=100.0)
    pad = max(1.5, 0.09 * (high - low))
    return (low - pad, min(high + pad, 104)), max(ys, default=100.0) * 1.1 + 1


def _baseline(figure: go.Figure, chance: float, *, is_one: bool) -> None:
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


def _look(name: str) -> tuple[str, str]:
    """Return the short name and the colour of an encoder, the same on every page."""
    entry = ENCODERS.get(name)
    if entry is None:
        return name, BASELINE
    return entry.label or entry.title, look_of(ENCODERS, name).colour
