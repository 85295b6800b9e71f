"""Reduce the points of large figures so that a report stays small.

A report holds Plotly itself, which is two of the three megabytes that a mail still takes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Figure = Mapping[str, Any]

MOST_LETTERS = 700_000
"""Maximum size of all figures of a report together, as JSON."""

_CLOUDS = ("scattergl", "scatter3d")
"""Trace types whose points may be dropped: none of them shows exact measurements."""

_MOST_SHAPES = 10_000
"""Maximum number of points drawn as SVG; more would make the page slow to scroll."""


def thin_figures(
    figures: Sequence[Figure | None], most_letters: int = MOST_LETTERS
) -> list[tuple[Figure | None, str]]:
    """Thin the largest figures until all fit a size limit; return (figure, note) pairs.

    The largest give way first, and keep points evenly taken of each group. Lines, bars and what
    else is read off stays whole.

    Parameters
    ----------
    figures : sequence of dict or None
        As a slide holds them (`leakscope.core.findings.drawing`).

    Examples
    --------
    >>> cloud = {"type": "scattergl", "mode": "markers", "x": [*range(900)], "y": [0] * 900}
    >>> ((figure, told),) = thin_figures([{"data": [cloud], "layout": {}}], 3_000)
    >>> told
    '376 of 900 points, evenly sampled to keep the report small'
    >>> figure["data"][0]["x"][:4]
    [0, 2, 4, 7]
    """
    letters = [len(json.dumps(figure)) if figure else 0 for figure in figures]
    limit = _size_limit(letters, most_letters)
    return [
        (figure, "") if figure is None or n <= limit else _thin_figure(figure, limit / n)
        for figure, n in zip(figures, letters, strict=True)
    ]


def without_webgl(figure: Figure) -> Figure:
    """Return a figure drawn with SVG instead of WebGL; unchanged if it has too many points.

    A browser keeps about 16 WebGL contexts, Plotly takes two for each figure, and a figure that
    loses its context is blank. A report's size limit leaves room for at most six figures with more
    points than this.
    """
    n = sum(_count_points(trace) for trace in figure["data"] if trace.get("type") == "scattergl")
    if n > _MOST_SHAPES:
        return figure
    kinds = {"scattergl": "scatter"}
    data = [
        {**trace, "type": kinds[trace["type"]]} if trace.get("type") in kinds else trace
        for trace in figure["data"]
    ]
    return {**figure, "data": data}


def _size_limit(sizes: Sequence[int], most: int) -> float:
    """Compute the size to which the largest must be cut so that the sum of sizes is `most`."""
    left, n_left = float(most), len(sizes)
    for size in sorted(sizes):
        if size * n_left > left:
            return left / n_left
        left, n_left = left - size, n_left - 1
    return float("inf")


def _thin_figure(figure: Figure, share: float) -> tuple[Figure, str]:
    """Keep a share of a figure's points; return the figure and a note of how many are drawn."""
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
        traces.append(_downsample(own, kept, n_own))
        n_drawn, n = n_drawn + n_kept, n + n_own
    if not n:
        return figure, ""
    told = f"{n_drawn:,} of {n:,} points, evenly sampled to keep the report small"
    return {**figure, "data": traces}, told


def _n_points(trace: Mapping[str, Any]) -> int:
    """Return how many points of a trace may be dropped; 0 unless it is a point cloud."""
    if trace.get("type") not in _CLOUDS or trace.get("mode") != "markers":
        return 0
    return _count_points(trace)


def _count_points(trace: Mapping[str, Any]) -> int:
    """Return how many points a trace has."""
    x = trace.get("x")
    packed = _decode_array(x)
    return len(packed if packed is not None else x if isinstance(x, list) else ())


def _downsample(part: Any, kept: NDArray[np.int64], n: int) -> Any:
    """Keep the chosen rows of each per-point array (length n) within a trace; copy the rest."""
    packed = _decode_array(part)
    if packed is not None:
        if len(packed) != n:
            return part
        return {**part, "bdata": base64.b64encode(packed[kept].tobytes()).decode()}
    if isinstance(part, Mapping):
        return {name: _downsample(each, kept, n) for name, each in part.items()}
    if isinstance(part, list) and len(part) == n:
        return [part[i] for i in kept]
    return part


def _decode_array(part: Any) -> NDArray[Any] | None:
    """Decode an array in Plotly's base64 format; None if it is not one."""
    if not isinstance(part, Mapping) or not {"dtype", "bdata"} <= part.keys() or "shape" in part:
        return None
    try:
        kind = np.dtype(f"<{part['dtype']}")
        return np.frombuffer(base64.b64decode(part["bdata"]), kind) if kind.kind in "iuf" else None
    except (TypeError, ValueError):  # from a file that Plotly did not write
        return None
