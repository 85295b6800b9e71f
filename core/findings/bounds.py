"""Limits on a figure's size and ticks, so that drawing stays fast."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leakscope.core.errors import InvalidInputError

_MOST_POINTS: Mapping[str, int] = {"heatmap": 60_000, "scattergl": 60_000}
"""Maximum number of points by kind of chart; a map of a user's own texts is a `scattergl`."""
_MOST_SHAPES = 20_000
"""Maximum number of points of any other chart, which draws each as a separate shape."""

_MOST_MARKS, _MOST_PIXELS, _MOST_TICKS = 1_000, 4_000, 500


def check_bounds(figure: Mapping[str, Any]) -> None:
    """Raise InvalidInputError if a figure has too many points, marks or pixels to be drawn.

    Raises
    ------
    InvalidInputError
        A chart has too many points, or a figure too many charts, notes or shapes, or pixels.
    """
    layout = figure["layout"]
    n_points = 0.0
    for chart in figure["data"]:
        most = _MOST_POINTS.get(chart.get("type", "scatter"), _MOST_SHAPES)
        n_points += max((_length(part) for part in chart.values()), default=0) / most
    marks = (figure["data"], layout.get("annotations", ()), layout.get("shapes", ()))
    sizes = (layout.get("width"), layout.get("height"))
    if (
        n_points > 1
        or any(len(part) > _MOST_MARKS for part in marks if isinstance(part, Sequence))
        or any(isinstance(size, int | float) and size > _MOST_PIXELS for size in sizes)
    ):
        raise InvalidInputError("A figure is too large to draw: it has too many points.")


def with_few_ticks(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return a figure without tick settings that would draw too many ticks."""
    spans = {letter: _span(figure["data"], letter) for letter in "xyz"}
    return {**figure, "layout": _bound_axes(figure["layout"], spans)}


def _bound_axes(layout: Mapping[str, Any], spans: Mapping[str, float]) -> dict[str, Any]:
    """Return a layout whose axes, also those of 3D scenes, have few ticks."""
    found = {}
    for name, part in layout.items():
        if isinstance(part, Mapping) and name[1:5] == "axis" and name[0] in spans:
            found[name] = _bound_axis(part, spans[name[0]])
        elif isinstance(part, Mapping) and name.startswith("scene"):
            found[name] = _bound_axes(part, spans)
        else:
            found[name] = part
    return found


def _bound_axis(axis: Mapping[str, Any], span: float) -> dict[str, Any]:
    """Return an axis without tick settings that would draw too many ticks."""
    ends = axis.get("range")
    if isinstance(ends, list) and len(ends) == 2 and all(isinstance(e, int | float) for e in ends):
        span = max(span, abs(ends[1] - ends[0]))
    found = _bound_ticks(axis, span, is_log=axis.get("type") == "log")
    if isinstance(axis.get("minor"), Mapping):
        found["minor"] = _bound_ticks(axis["minor"], span, is_log=axis.get("type") == "log")
    return found


def _bound_ticks(part: Mapping[str, Any], span: float, *, is_log: bool) -> dict[str, Any]:
    """Return tick settings without a step or number that gives too many ticks."""
    step, n_ticks = part.get("dtick"), part.get("nticks", 0)
    is_few = step in ("D1", "D2")
    if isinstance(step, int | float) and step > 0:
        is_few = step >= 1 if is_log else span / step <= _MOST_TICKS
    left_out = {"nticks"} if n_ticks not in range(_MOST_TICKS) else set()
    if step is not None and not is_few:
        left_out |= {"dtick", "tick0"}
    return {name: value for name, value in part.items() if name not in left_out}


def _span(charts: Sequence[Mapping[str, Any]], letter: str) -> float:
    """Return the length of an axis's range, including 0; infinite for categories and dates."""
    ends = [0.0]
    for chart in charts:
        try:
            numbers = np.asarray(_decode_array(chart.get(letter, ())), dtype=np.float64)
        except (ValueError, TypeError):  # categories, or dates, which Plotly counts in milliseconds
            return np.inf
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            ends += [float(finite.min()), float(finite.max())]
    return max(ends) - min(ends)


def _decode_array(values: Any) -> Any:
    """Return an array of a figure, decoded from Base64 if encoded, without missing values."""
    if isinstance(values, Mapping) and "bdata" in values:
        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=np.dtype(values["dtype"]))
    return [value for value in _flatten(values) if value is not None]


def _flatten(values: Any) -> Iterator[Any]:
    """Yield the values of nested lists."""
    for value in values if isinstance(values, list) else ():
        if isinstance(value, list):
            yield from _flatten(value)
        else:
            yield value


def _length(part: Any) -> int:
    """Return the number of values of an array in a figure."""
    if isinstance(part, Mapping) and "bdata" in part:
        try:
            return int(_decode_array(part).size)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(
                "An array in a figure does not match its stated type."
            ) from error
    return sum(1 for _ in _flatten(part))
