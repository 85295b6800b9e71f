"""What of a figure could be drawn for minutes: refused, or left to Plotly's own choice."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from core.errors import InvalidInputError

__all__ = ["check_bounds", "with_few_ticks"]

_MOST_POINTS: Mapping[str, int] = {"heatmap": 60_000, "scattergl": 60_000}
"""Of a chart by its kind; a map of a visitor's own texts is one of the second."""
_MOST_SHAPES = 20_000
"""Points of any other chart, each of which becomes a shape of its own."""

_MOST_MARKS, _MOST_PIXELS, _MOST_TICKS = 1_000, 4_000, 500


def check_bounds(figure: Mapping[str, Any]) -> None:
    """Refuse what is too much to draw.

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
        raise InvalidInputError("A figure is too large to be drawn: it holds too many points.")


def with_few_ticks(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return a figure whose axes say how many ticks they have only where those are few."""
    spans = {letter: _span(figure["data"], letter) for letter in "xyz"}
    return {**figure, "layout": _bounded(figure["layout"], spans)}


def _bounded(layout: Mapping[str, Any], spans: Mapping[str, float]) -> dict[str, Any]:
    found = {}
    for name, part in layout.items():
        if isinstance(part, Mapping) and name[1:5] == "axis" and name[0] in spans:
            found[name] = _axis(part, spans[name[0]])
        elif isinstance(part, Mapping) and name.startswith("scene"):
            found[name] = _bounded(part, spans)
        else:
            found[name] = part
    return found


def _axis(axis: Mapping[str, Any], span: float) -> dict[str, Any]:
    """Return an axis without a distance of ticks of which there would be too many."""
    ends = axis.get("range")
    if isinstance(ends, list) and len(ends) == 2 and all(isinstance(e, int | float) for e in ends):
        span = max(span, abs(ends[1] - ends[0]))
    found = _ticks(axis, span, is_log=axis.get("type") == "log")
    if isinstance(axis.get("minor"), Mapping):
        found["minor"] = _ticks(axis["minor"], span, is_log=axis.get("type") == "log")
    return found


def _ticks(part: Mapping[str, Any], span: float, *, is_log: bool) -> dict[str, Any]:
    step, n_ticks = part.get("dtick"), part.get("nticks", 0)
    is_few = step in ("D1", "D2")
    if isinstance(step, int | float) and step > 0:
        is_few = step >= 1 if is_log else span / step <= _MOST_TICKS
    left_out = {"nticks"} if n_ticks not in range(_MOST_TICKS) else set()
    if step is not None and not is_few:
        left_out |= {"dtick", "tick0"}
    return {name: value for name, value in part.items() if name not in left_out}


def _span(charts: Sequence[Mapping[str, Any]], letter: str) -> float:
    """Return between what ends the numbers of an axis lie, nought included; infinite for others."""
    ends = [0.0]
    for chart in charts:
        try:
            numbers = np.asarray(_plain(chart.get(letter, ())), dtype=np.float64)
        except (ValueError, TypeError):  # categories, or dates, which Plotly counts in milliseconds
            return np.inf
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            ends += [float(finite.min()), float(finite.max())]
    return max(ends) - min(ends)


def _plain(values: Any) -> Any:
    if isinstance(values, Mapping) and "bdata" in values:
        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=np.dtype(values["dtype"]))
    return [value for value in _flat(values) if value is not None]


def _flat(values: Any) -> Iterator[Any]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def _length(part: Any) -> int:
    """Return how many points an array has."""
    if isinstance(part, Mapping) and "bdata" in part:
        try:
            return int(_plain(part).size)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError("An array of a figure is not what it says.") from error
    return sum(1 for _ in _flat(part))
