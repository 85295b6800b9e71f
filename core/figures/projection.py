"""Figures of maps: points by colour and shape, what was sought, typed and moved on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from core.figures.style import BELOW, style
from core.projection.layout import Layout
from core.projection.looks import Looks

__all__ = ["hover_texts", "map_figure"]

_COLOURS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#009E73", "#B5A900", "#7A5FA8")
"""Okabe and Ito's without vermilion, which is kept for what is sought, typed and moved."""
_OTHER = "#8A8F96"
_MARK = "#D55E00"
_SHAPES = ("circle", "diamond", "square", "cross", "triangle-up", "triangle-down", "pentagon")
"""Of groups, in two dimensions."""
_SOLID_SHAPES = (
    "circle",
    "diamond",
    "square",
    "circle-open",
    "square-open",
    "diamond-open",
    "x",
)
"""Of groups, in three dimensions, which know one more; the last needs a font, so it comes last."""
_TYPED = {True: ("star", 19), False: ("cross", 16)}
_MOVED = {True: ("x", 7.0), False: ("diamond-open", 3.5)}
"""Symbol and size in two dimensions and in three: the typed sentence has one of its own."""
_MOST_HOVER_CHARACTERS = 240


def hover_texts(texts: Sequence[str]) -> list[str]:
    """Return texts as hover labels: cut, wrapped at 48 characters, with no markup in them."""
    return [_hover(text) for text in texts]


def _hover(text: str) -> str:
    cut = " ".join(text[: 4 * _MOST_HOVER_CHARACTERS].split())
    if len(cut) > _MOST_HOVER_CHARACTERS:
        cut = cut[: _MOST_HOVER_CHARACTERS - 1] + "…"
    return "<br>".join(_safe(line) for line in wrap(cut, 48))


def _safe(text: str) -> str:
    """Return a text for a hover label, in which < and & are markup and %{ a field."""
    for mark, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("%", "&#37;")):
        text = text.replace(mark, name)
    return text


def map_figure(
    layout: Layout,
    hover: Sequence[str],
    *,
    title: str,
    colour: Looks,
    shape: Looks | None = None,
    found: NDArray[np.int64] | None = None,
    typed: NDArray[np.float32] | None = None,
    moved: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    selected: Sequence[int] = (),
) -> go.Figure:
    """Return the map: a trace for each colour and shape that occurs, drawn by WebGL.

    The position of a point among all is its `customdata`.

    Parameters
    ----------
    hover : sequence of n str
        From `hover_texts`.
    colour, shape : Looks
        Groups by colour, with a shape of their own where no second column has the shapes.
    found : int64 array, optional
        Points to ring: those that hold what is sought.
    typed : float32 array (1, c), optional
        Place of the typed sentence, drawn as a star, in three dimensions as a cross.
    moved : pair of float32 arrays (m, c), optional
        Before and after a defence, joined by lines.
    selected : sequence of int, optional
        Points to show in full while all others fade; in two dimensions alone.
    """
    figure = go.Figure()
    is_flat = layout.coordinates.shape[1] == 2
    labels = np.asarray(hover, dtype=object)
    for rows, look in _traces(colour, shape, is_flat):
        _add(figure, layout.coordinates[rows], customdata=rows, hovertext=labels[rows],
             hoverinfo="text", mode="markers", **look(len(layout.coordinates)),
             **_marks(rows, selected if is_flat else ()))  # fmt: skip
    if moved is not None:
        _add_moves(figure, *moved)
    if found is not None and len(found):
        _add_rings(figure, layout.coordinates[found], f"found ({len(found):,})", _MARK)
    if typed is not None:
        symbol, size = _TYPED[is_flat]
        _add(figure, typed, mode="markers", name="your sentence", hoverinfo="name",
             marker={"symbol": symbol, "size": size, "color": _MARK,
                     "line": {"color": "white", "width": 1.5}})  # fmt: skip
    _dress(figure, layout, title)
    return figure


def _traces(colour: Looks, shape: Looks | None, is_flat: bool) -> Any:
    shapes = _SHAPES if is_flat else _SOLID_SHAPES
    for c, name in enumerate(colour.groups):
        of_colour = colour.of == c
        for s, second in enumerate(shape.groups if shape else ("",)):
            rows = np.flatnonzero(of_colour & (shape.of == s) if shape else of_colour)
            if not len(rows):
                continue
            symbol = shapes[(s if shape else c) % len(shapes)]
            told = f"{name}, {second}" if shape else name
            tint = _OTHER if colour.is_plain(c) else _COLOURS[c % len(_COLOURS)]
            yield rows, _Look(f"{_safe(_short(told))} ({len(rows):,})", tint, symbol, is_flat)


@dataclass(frozen=True)
class _Look:
    name: str
    colour: str
    symbol: str
    is_flat: bool

    def __call__(self, n_points: int) -> dict[str, Any]:
        """Return the look of a trace: many points are drawn small and sheer."""
        size = 8.0 if n_points <= 1000 else 6.0 if n_points <= 5000 else 4.0
        opacity = 0.85 if n_points <= 5000 else 0.6
        marker = {"symbol": self.symbol, "size": size if self.is_flat else size / 2,
                  "color": self.colour, "opacity": opacity}  # fmt: skip
        return {"name": self.name, "marker": marker}


def _marks(rows: NDArray[np.int64], selected: Sequence[int]) -> dict[str, Any]:
    """Return which points of a trace are selected; without any selection, nothing at all."""
    if not len(selected):
        return {}
    # A list: Plotly decodes packed arrays for coordinates alone.
    return {"selectedpoints": np.flatnonzero(np.isin(rows, selected)).tolist()}


def _short(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:35]}…"


def _add(figure: go.Figure, places: NDArray[np.float32], **look: Any) -> None:
    """Add points of two dimensions by Scattergl, of three by Scatter3d."""
    x, y = places[:, 0], places[:, 1]
    if places.shape[1] == 2:
        figure.add_trace(go.Scattergl(x=x, y=y, **look))
    else:
        figure.add_trace(go.Scatter3d(x=x, y=y, z=places[:, 2], **look))


def _add_rings(figure: go.Figure, places: NDArray[np.float32], name: str, colour: str) -> None:
    is_flat = places.shape[1] == 2
    marker = {"symbol": "circle-open", "size": 13 if is_flat else 9, "color": colour,
              "line": {"width": 2.2, "color": colour}}  # fmt: skip
    _add(figure, places, mode="markers", name=name, marker=marker, hoverinfo="skip")


def _add_moves(figure: go.Figure, before: NDArray[np.float32], after: NDArray[np.float32]) -> None:
    """Add a line from each place to the next and a ring where it ends."""
    gaps = np.full_like(before, np.nan)
    lines = np.stack([before, after, gaps], axis=1).reshape(-1, before.shape[1])
    _add(figure, lines, mode="lines", name="before → after", hoverinfo="skip",
         line={"color": "rgba(213,94,0,0.55)", "width": 1.2})  # fmt: skip
    symbol, size = _MOVED[before.shape[1] == 2]
    _add(figure, after, mode="markers", name=f"after the defence ({len(after):,})",
         hoverinfo="name", marker={"symbol": symbol, "color": _MARK, "size": size})  # fmt: skip


def _dress(figure: go.Figure, layout: Layout, title: str) -> None:
    style(figure, height=670)
    is_pca = layout.principal is not None
    figure.update_layout(
        title={"text": "<br>".join(f"<b>{_safe(line)}</b>" for line in wrap(title, 46)),
               "font": {"size": 15}, "x": 0, "y": 1, "yanchor": "top", "yref": "container",
               "pad": {"t": 46}},
        # The title keeps clear of the tool bar.
        legend={**BELOW, "itemsizing": "constant"},
        margin={"l": 0, "r": 0, "t": 106, "b": 8},
        dragmode="lasso" if layout.coordinates.shape[1] == 2 else "orbit",
        hoverlabel={"align": "left"},
        uirevision="map",
    )  # fmt: skip
    names = _axis_names(layout)
    if layout.coordinates.shape[1] == 2:
        shared = {"fixedrange": False, "showgrid": False, "zeroline": False,
                  "showticklabels": is_pca}  # fmt: skip
        figure.update_xaxes(title=names[0], **shared)
        figure.update_yaxes(title=names[1], scaleanchor="x", scaleratio=1, **shared)
        return
    plain = {"showbackground": False, "gridcolor": "rgba(128,128,128,0.25)",
             "showticklabels": False, "showspikes": False}  # fmt: skip
    figure.update_scenes(
        # The same box whatever the spread along an axis, seen from near: it fills its frame.
        aspectmode="manual",
        aspectratio={"x": 1.2, "y": 1.2, "z": 1.1},
        camera={"eye": {"x": 0.95, "y": 0.95, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.05}},
        xaxis={"title": {"text": names[0]}, **plain},
        yaxis={"title": {"text": names[1]}, **plain},
        zaxis={"title": {"text": names[2]}, **plain},
    )


def _axis_names(layout: Layout) -> list[str]:
    if layout.principal is None:
        return [""] * layout.coordinates.shape[1]  # they have no unit and no meaning
    return [
        f"component {i} ({share:.0%} of the variance)"
        for i, share in enumerate(layout.principal.kept, 1)
    ]
