"""Figures of maps: grouped points, search hits, the typed sentence and moved points."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from leakscope.core.figures.style import BELOW, style
from leakscope.core.projection.grouping import Grouping
from leakscope.core.projection.layout import Layout

_COLOURS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#009E73", "#B5A900", "#7A5FA8")
"""Okabe–Ito colours without vermilion, which marks search hits, typed and moved points."""
_OTHER = "#8A8F96"
_MARK = "#D55E00"
_SHAPES = ("circle", "diamond", "square", "cross", "triangle-up", "triangle-down", "pentagon")
"""Marker shapes of groups in two dimensions."""
_SOLID_SHAPES = (
    "circle",
    "diamond",
    "square",
    "circle-open",
    "square-open",
    "diamond-open",
    "x",
)
"""Marker shapes of groups in three dimensions; the last needs a font, so it comes last."""
_TYPED = {True: ("star", 19), False: ("cross", 16)}
_MOVED = {True: ("x", 7.0), False: ("diamond-open", 3.5)}
"""Symbol and size in two dimensions (True) and in three; the typed sentence has its own symbol."""
_MOST_HOVER_CHARACTERS = 240


def hover_texts(texts: Sequence[str]) -> list[str]:
    """Convert texts to hover labels: shortened, wrapped and escaped."""
    return ["<br>".join(_safe(line) for line in wrap(one_line(text), 48)) for text in texts]


def one_line(text: str) -> str:
    """Return a text in one line, cut to the maximum length of a hover label."""
    line = " ".join(text[: 4 * _MOST_HOVER_CHARACTERS].split())
    is_short = len(line) <= _MOST_HOVER_CHARACTERS
    return line if is_short else f"{line[: _MOST_HOVER_CHARACTERS - 1]}…"


def _safe(text: str) -> str:
    """Escape a text for a hover label, where < and & are markup and %{ a field."""
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("%", "&#37;")):
        text = text.replace(mark, name)
    return text


def map_figure(
    layout: Layout,
    hover: Sequence[str],
    *,
    title: str,
    colour: Grouping,
    shape: Grouping | None = None,
    found: NDArray[np.int64] | None = None,
    typed: NDArray[np.float32] | None = None,
    moved: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    selected: Sequence[int] = (),
) -> go.Figure:
    """Plot a map by WebGL, one trace per combination of colour and shape.

    The position of a point among all is its `customdata`.

    Parameters
    ----------
    hover : sequence of n str
        From `hover_texts`.
    colour, shape : Grouping
        Groups by colour and by shape; without a second column, shapes follow the colours.
    found : int64 array, optional
        Points to ring: the search hits.
    typed : float32 array (1, c), optional
        Position of the typed sentence: a star, or a cross in three dimensions.
    moved : pair of float32 arrays (m, c), optional
        Positions before and after a defence, joined by lines.
    selected : sequence of int, optional
        Points to highlight; only in two dimensions.
    """
    figure = go.Figure()
    is_flat = layout.coordinates.shape[1] == 2
    labels = np.asarray(hover, dtype=object)
    styles, group = group_styles(colour, shape, is_flat=is_flat)
    n = len(layout.coordinates)
    size = 8.0 if n <= 1000 else 6.0 if n <= 5000 else 4.0
    marker = {"size": size if is_flat else size / 2, "opacity": 0.85 if n <= 5000 else 0.6}
    for i, look in enumerate(styles):
        rows = np.flatnonzero(group == i)
        own = {}
        if is_flat and len(selected):
            # A list: Plotly decodes packed arrays only for coordinates.
            own["selectedpoints"] = np.flatnonzero(np.isin(rows, selected)).tolist()
        _add_trace(
            figure,
            layout.coordinates[rows],
            customdata=rows,
            hovertext=labels[rows],
            hoverinfo="text",
            mode="markers",
            name=_safe(look["name"]),
            marker={"symbol": look["shape"], "color": look["colour"], **marker},
            **own,
        )
    if moved is not None:
        _add_moves(figure, *moved)
    if found is not None and len(found):
        _add_trace(
            figure,
            layout.coordinates[found],
            mode="markers",
            name=f"found ({len(found):,})",
            marker={
                "symbol": "circle-open",
                "size": 13 if is_flat else 9,
                "color": _MARK,
                "line": {"width": 2.2, "color": _MARK},
            },
            hoverinfo="skip",
        )
    if typed is not None:
        symbol, size = _TYPED[is_flat]
        _add_trace(
            figure,
            typed,
            mode="markers",
            name="your sentence",
            hoverinfo="name",
            marker={
                "symbol": symbol,
                "size": size,
                "color": _MARK,
                "line": {"color": "white", "width": 1.5},
            },
        )
    _style_map(figure, layout, title)
    return figure


def group_styles(
    colour: Grouping, shape: Grouping | None, *, is_flat: bool = True
) -> tuple[list[dict[str, str]], NDArray[np.int64]]:
    """Return each group's name, colour and shape, and the index of each point's group.

    Parameters
    ----------
    colour, shape : Grouping
        Groups by colour and by shape; without a second column, shapes follow the colours.

    Returns
    -------
    list of dict
        `name`, with the number of points, `colour` and `shape`, for each group that has points.
    int64 array, shape (n,)
        The position of each point's group in that list.
    """
    shapes = _SHAPES if is_flat else _SOLID_SHAPES
    styles: list[dict[str, str]] = []
    group = np.zeros(len(colour.of), np.int64)
    for c, name in enumerate(colour.groups):
        of_colour = colour.of == c
        for s, second in enumerate(shape.groups if shape else ("",)):
            rows = np.flatnonzero(of_colour & (shape.of == s) if shape else of_colour)
            if not len(rows):
                continue
            label = f"{name}, {second}" if shape else name
            label = label if len(label) <= 36 else f"{label[:35]}…"
            group[rows] = len(styles)
            styles.append(
                {
                    "name": f"{label} ({len(rows):,})",
                    "colour": _OTHER if colour.is_rest(c) else _COLOURS[c % len(_COLOURS)],
                    "shape": shapes[(s if shape else c) % len(shapes)],
                }
            )
    return styles, group


def _add_trace(figure: go.Figure, places: NDArray[np.float32], **look: Any) -> None:
    """Add a trace of points to a figure: Scattergl in two dimensions, Scatter3d in three."""
    x, y = places[:, 0], places[:, 1]
    if places.shape[1] == 2:
        figure.add_trace(go.Scattergl(x=x, y=y, **look))
    else:
        figure.add_trace(go.Scatter3d(x=x, y=y, z=places[:, 2], **look))


def _add_moves(figure: go.Figure, before: NDArray[np.float32], after: NDArray[np.float32]) -> None:
    """Add a line to a figure from each point's old to its new position, with a marker."""
    gaps = np.full_like(before, np.nan)
    lines = np.stack([before, after, gaps], axis=1).reshape(-1, before.shape[1])
    _add_trace(
        figure,
        lines,
        mode="lines",
        name="before → after",
        hoverinfo="skip",
        line={"color": "rgba(213,94,0,0.55)", "width": 1.2},
    )
    symbol, size = _MOVED[before.shape[1] == 2]
    _add_trace(
        figure,
        after,
        mode="markers",
        name=f"after the defence ({len(after):,})",
        hoverinfo="name",
        marker={"symbol": symbol, "color": _MARK, "size": size},
    )


def _style_map(figure: go.Figure, layout: Layout, title: str) -> None:
    """Set a map figure's title, legend, axes and drag mode."""
    style(figure, height=670)
    is_pca = layout.principal is not None
    figure.update_layout(
        title={
            "text": "<br>".join(f"<b>{_safe(line)}</b>" for line in wrap(title, 46)),
            "font": {"size": 15},
            "x": 0,
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "pad": {"t": 46},
        },
        # The margin keeps the title clear of the toolbar.
        legend={**BELOW, "itemsizing": "constant"},
        margin={"l": 0, "r": 0, "t": 106, "b": 8},
        dragmode="lasso" if layout.coordinates.shape[1] == 2 else "orbit",
        hoverlabel={"align": "left"},
        uirevision="map",
    )
    names = _axis_names(layout)
    if layout.coordinates.shape[1] == 2:
        shared = {
            "fixedrange": False,
            "showgrid": False,
            "zeroline": False,
            "showticklabels": is_pca,
        }
        figure.update_xaxes(title=names[0], **shared)
        figure.update_yaxes(title=names[1], scaleanchor="x", scaleratio=1, **shared)
        return
    plain = {
        "showbackground": False,
        "gridcolor": "rgba(128,128,128,0.25)",
        "showticklabels": False,
        "showspikes": False,
    }
    figure.update_scenes(
        # A fixed box, seen from near, so that every map fills its frame.
        aspectmode="manual",
        aspectratio={"x": 1.2, "y": 1.2, "z": 1.1},
        camera={"eye": {"x": 0.95, "y": 0.95, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.05}},
        xaxis={"title": {"text": names[0]}, **plain},
        yaxis={"title": {"text": names[1]}, **plain},
        zaxis={"title": {"text": names[2]}, **plain},
    )


def _axis_names(layout: Layout) -> list[str]:
    """Return a map's axis titles: the shares of variance for PCA, none for other methods."""
    if layout.principal is None:
        return [""] * layout.coordinates.shape[1]  # the axes have no unit and no meaning
    return [
        f"component {i} ({share:.0%} of the variance)"
        for i, share in enumerate(layout.principal.kept, 1)
    ]
