"""Figures of many points, thinned until a report with all of them stays small.

A report holds Plotly itself, which is two of the three megabytes that a mail still takes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_LETTERS", "Figure", "as_shapes", "thinned"]

Figure = Mapping[str, Any]

MOST_LETTERS = 700_000
"""Of all figures of a report together, as JSON."""

_CLOUDS = ("scattergl", "scatter3d")
"""Charts of which points can be left out: none is a measurement that is read off."""

_MOST_SHAPES = 10_000
"""Points of a figure that are drawn as shapes; of more, a page would be slow to scroll."""


def thinned(
    figures: Sequence[Figure | None], most_letters: int = MOST_LETTERS
) -> list[tuple[Figure | None, str]]:
    """Return figures that are small together, each with what it draws, where that is not all.

    The largest give way first, and keep points evenly taken of each group. Lines, bars and what
    else is read off stays whole.

    Parameters
    ----------
    figures : sequence of dict or None
        As a slide holds them (`core.story.drawing`).

    Examples
    --------
    >>> cloud = {"type": "scattergl", "mode": "markers", "x": [*range(900)], "y": [0] * 900}
    >>> ((figure, told),) = thinned([{"data": [cloud], "layout": {}}], 3_000)
    >>> told
    '376 of 900 points, evenly taken: all would make the report too large'
    >>> figure["data"][0]["x"][:4]
    [0, 2, 4, 7]
    """
    letters = [len(json.dumps(figure)) if figure else 0 for figure in figures]
    limit = _level(letters, most_letters)
    return [
        (figure, "") if figure is None or n <= limit else _thin(figure, limit / n)
        for figure, n in zip(figures, letters, strict=True)
    ]


def as_shapes(figure: Figure) -> Figure:
    """Return a figure whose points in the plane are shapes, no program of WebGL, if they are few.

    A browser keeps about 16 such programs at once, Plotly takes two for a figure, and of a figure
    that loses its own nothing is seen. So many letters as a report holds leave room for six
    figures at most that have more points than this.
    """
    n = sum(_length(trace) for trace in figure["data"] if trace.get("type") == "scattergl")
    if n > _MOST_SHAPES:
        return figure
    kinds = {"scattergl": "scatter"}
    data = [
        {**trace, "type": kinds[trace["type"]]} if trace.get("type") in kinds else trace
        for trace in figure["data"]
    ]
    return {**figure, "data": data}


def _level(sizes: Sequence[int], most: int) -> float:
    """Return the size that those above it are cut down to, so that the sum is `most`."""
    left, n_left = float(most), len(sizes)
    for size in sorted(sizes):
        if size * n_left > left:
            return left / n_left
        left, n_left = left - size, n_left - 1
    return float("inf")


def _thin(figure: Figure, share: float) -> tuple[Figure, str]:
    """Return a figure with a share of its points, and how many these are."""
    n_drawn = n = 0
    traces = []
    for trace in figure["data"]:
        n_own = _n_points(trace)
        if n_own < 2:
            traces.append(trace)
            continue
        n_kept = max(int(share * n_own), 1)
        kept = np.linspace(0, n_own - 1, n_kept).astype(np.int64)
        own = {name: part for name, part in trace.items() if name != "selectedpoints"}
        traces.append(_taken(own, kept, n_own))
        n_drawn, n = n_drawn + n_kept, n + n_own
    if not n:
        return figure, ""
    told = f"{n_drawn:,} of {n:,} points, evenly taken: all would make the report too large"
    return {**figure, "data": traces}, told


def _n_points(trace: Mapping[str, Any]) -> int:
    """Return how many points a trace has that can be left out."""
    if trace.get("type") not in _CLOUDS or trace.get("mode") != "markers":
        return 0
    return _length(trace)


def _length(trace: Mapping[str, Any]) -> int:
    """Return how many points a trace has."""
    x = trace.get("x")
    packed = _unpacked(x)
    return len(packed if packed is not None else x if isinstance(x, list) else ())


def _taken(part: Any, kept: NDArray[np.int64], n: int) -> Any:
    """Return a part of a trace in which every array that has a value for each point has fewer."""
    packed = _unpacked(part)
    if packed is not None:
        if len(packed) != n:
            return part
        return {**part, "bdata": base64.b64encode(packed[kept].tobytes()).decode()}
    if isinstance(part, Mapping):
        return {name: _taken(each, kept, n) for name, each in part.items()}
    if isinstance(part, list) and len(part) == n:
        return [part[i] for i in kept]
    return part


def _unpacked(part: Any) -> NDArray[Any] | None:
    """Return an array as Plotly packs it; None where it is none."""
    if not isinstance(part, Mapping) or not {"dtype", "bdata"} <= part.keys() or "shape" in part:
        return None
    try:
        kind = np.dtype(f"<{part['dtype']}")
        return np.frombuffer(base64.b64decode(part["bdata"]), kind) if kind.kind in "iuf" else None
    except (TypeError, ValueError):  # somebody else's
        return None
