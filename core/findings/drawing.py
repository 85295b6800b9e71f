"""Figures as plain data for stories, checked so that they only draw and load or run nothing.

A story may come from anyone. Only the kinds of charts that the pages draw are accepted, and in
texts only the few tags that Plotly needs. Anything that could fetch a picture, open a link or run
code is refused.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leakscope.core.errors import InvalidInputError

if TYPE_CHECKING:
    import plotly.graph_objects as go


CHARTS = ("bar", "heatmap", "scatter", "scatter3d", "scattergl")
"""The kinds of charts that pages draw."""

_FETCHING = re.compile(
    r"^(images?|sources?|src|href|url|links?|template|geo\d*|map(box)?\d*|topojson\w*|plotly\w*"
    r"|updatemenus|sliders|frames|transforms|range(breaks|slider|selector)|[xy]bins)$",
    re.IGNORECASE,
)
"""Parts that load something, that the pages never use, or that could be drawn endlessly."""

_NOT_MARKS = re.compile(r"<(?!/?(?:b|i|br|sub|sup|em|strong|extra)\s*/?>)", re.IGNORECASE)
_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|nbsp|#\d{1,5}|#x[0-9a-f]{1,5});)", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/=]*")

_MOST_ENTRIES = 12
_PLAIN_RANK = 1000
"""Plotly's default legend rank."""

_MOST_NODES, _MOST_DEPTH, _MOST_LETTERS, _MOST_BASE64 = 200_000, 12, 4_000, 3_000_000


def plain_figure(figure: go.Figure) -> dict[str, Any]:
    """Convert a Plotly figure to the checked JSON that a story stores, without its template.

    Data that only the page uses, such as clicked points, and empty labels are removed, too.
    """
    data = json.loads(figure.to_json())
    for trace in data["data"]:
        if "customdata" not in str(trace.get("hovertemplate", "")):
            trace.pop("customdata", None)
        if not any(trace.get("hovertext") or ()):
            trace.pop("hovertext", None)
    layout = {name: part for name, part in data["layout"].items() if name != "template"}
    return checked_figure({"data": data["data"], "layout": layout})


def short_legend(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    """Hide the least important legend entries of a figure above 12; return the figure.

    A longer legend would shrink the figure and be cut off. Highlighted traces have a `legendrank`
    below Plotly's default of 1000. The last entry gives the number of omitted ones.
    """
    data, shapes = list(figure["data"]), figure.get("layout", {}).get("shapes") or ()
    listed = [
        i
        for i, trace in enumerate(data)
        if trace.get("name")
        and trace.get("showlegend") is not False
        and trace.get("type") != "heatmap"
    ]
    n_shapes = sum(shape.get("showlegend") is True for shape in shapes)
    if len(listed) + n_shapes <= _MOST_ENTRIES:
        return figure
    ranked = sorted(listed, key=lambda i: data[i].get("legendrank") or _PLAIN_RANK)
    hidden = ranked[max(_MOST_ENTRIES - 1 - n_shapes, 1) :]
    for i in hidden:
        data[i] = {**data[i], "showlegend": False}
    last = data[hidden[-1]]
    axes = {name: [None] for name in ("x", "y", "z") if name in last}
    more = {
        "type": last.get("type", "scatter"),
        **axes,
        "name": f"and {len(hidden)} more",
        "showlegend": True,
        "legendrank": 2 * _PLAIN_RANK,
        "marker": {"color": "rgba(0,0,0,0)"},
    }
    return {**figure, "data": [*data, more]}


def checked_figure(found: Any) -> dict[str, Any]:
    """Check a figure from untrusted data; return a copy with safe texts and few axis ticks.

    Raises
    ------
    InvalidInputError
        It is not a figure, holds something that pages do not draw, or is too large.
    """
    if not isinstance(found, Mapping) or not isinstance(found.get("data"), list):
        raise InvalidInputError("A figure must contain a list of charts under 'data'.")
    layout = found.get("layout", {})
    if not isinstance(layout, Mapping):
        raise InvalidInputError("The layout of a figure must be an object.")
    for trace in found["data"]:
        kind = trace.get("type", "scatter") if isinstance(trace, Mapping) else None
        if kind not in CHARTS:
            raise InvalidInputError(
                f"A chart of a figure must be one of {', '.join(CHARTS)}, got {str(kind)[:40]!r}."
            )
    cleaner = _Cleaner()
    cleaned = {"data": cleaner.clean(found["data"], 0), "layout": cleaner.clean(layout, 0)}
    check_bounds(cleaned)
    return with_few_ticks(cleaned)


class _Cleaner:
    """Copies nested figure data, checking its names, values and size."""

    def __init__(self) -> None:
        """Start with the maximum number of nested values that a figure may have."""
        self.n_left = _MOST_NODES

    def clean(self, value: Any, depth: int, name: str = "") -> Any:
        """Return a checked copy of a nested value; raise InvalidInputError if it is not allowed."""
        self.n_left -= 1
        if self.n_left < 0 or depth > _MOST_DEPTH:
            raise InvalidInputError("A figure is too large or nested too deeply to be shown.")
        if isinstance(value, Mapping):
            return {
                self._check_name(key): self.clean(v, depth + 1, str(key))
                for key, v in value.items()
            }
        if isinstance(value, list):
            return [self.clean(each, depth + 1) for each in value]
        if isinstance(value, str):
            return _clean_text(value, name)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if value is None or isinstance(value, bool | int | float):
            return value
        raise InvalidInputError(f"A figure cannot hold a {type(value).__name__}.")

    @staticmethod
    def _check_name(name: Any) -> str:
        """Return a key of a figure unchanged, or raise InvalidInputError if it is not allowed."""
        if not isinstance(name, str) or _FETCHING.match(name) or len(name) > 60:
            raise InvalidInputError(f"A figure must not hold {str(name)[:40]!r}: no page draws it.")
        return name


def _clean_text(value: str, name: str) -> str:
    """Escape unsafe markup in a text of a figure; raise InvalidInputError if it is too long."""
    if name == "bdata":
        if len(value) > _MOST_BASE64 or not _BASE64.fullmatch(value):
            raise InvalidInputError("An array of a figure is not Base64, or is too large.")
        return value
    if len(value) > _MOST_LETTERS:
        raise InvalidInputError(
            f"A text of a figure must have at most {_MOST_LETTERS:,} characters."
        )
    return _ENTITY.sub("&amp;", _NOT_MARKS.sub("&lt;", value))


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
        n_points += max((_count_values(part) for part in chart.values()), default=0) / most
    marks = (figure["data"], layout.get("annotations", ()), layout.get("shapes", ()))
    sizes = (layout.get("width"), layout.get("height"))
    if (
        n_points > 1
        or any(len(part) > _MOST_MARKS for part in marks if isinstance(part, Sequence))
        or any(isinstance(size, int | float) and size > _MOST_PIXELS for size in sizes)
    ):
        raise InvalidInputError("A figure is too large to draw: it has too many points.")


def with_few_ticks(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return a figure without the axis settings that would draw too many ticks."""
    spans = {letter: _data_range(figure["data"], letter) for letter in "xyz"}
    return {**figure, "layout": _bound_axes(figure["layout"], spans)}


def _bound_axes(layout: Mapping[str, Any], spans: Mapping[str, float]) -> dict[str, Any]:
    """Remove tick settings that give too many ticks from a layout's axes, also in 3D."""
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
    """Return an axis without its tick settings (major and minor) that would draw too many ticks."""
    ends = axis.get("range")
    if isinstance(ends, list) and len(ends) == 2 and all(isinstance(e, int | float) for e in ends):
        span = max(span, abs(ends[1] - ends[0]))
    found = _bound_ticks(axis, span, is_log=axis.get("type") == "log")
    if isinstance(axis.get("minor"), Mapping):
        found["minor"] = _bound_ticks(axis["minor"], span, is_log=axis.get("type") == "log")
    return found


def _bound_ticks(part: Mapping[str, Any], span: float, *, is_log: bool) -> dict[str, Any]:
    """Return the settings of an axis without a tick step or number that gives too many ticks."""
    step, n_ticks = part.get("dtick"), part.get("nticks", 0)
    is_few = step in ("D1", "D2")
    if isinstance(step, int | float) and step > 0:
        is_few = step >= 1 if is_log else span / step <= _MOST_TICKS
    left_out = {"nticks"} if n_ticks not in range(_MOST_TICKS) else set()
    if step is not None and not is_few:
        left_out |= {"dtick", "tick0"}
    return {name: value for name, value in part.items() if name not in left_out}


def _data_range(charts: Sequence[Mapping[str, Any]], letter: str) -> float:
    """Return the range of the charts' data on an axis, with 0; infinite for non-numbers."""
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
    """Return a figure's array decoded from Base64; a nested list as a flat one without None."""
    if isinstance(values, Mapping) and "bdata" in values:
        return np.frombuffer(base64.b64decode(values["bdata"]), dtype=np.dtype(values["dtype"]))
    return [value for value in _flatten(values) if value is not None]


def _flatten(values: Any) -> Iterator[Any]:
    """Yield the values of nested lists, depth first; nothing for anything but a list."""
    for value in values if isinstance(values, list) else ():
        if isinstance(value, list):
            yield from _flatten(value)
        else:
            yield value


def _count_values(part: Any) -> int:
    """Return the number of values in an array of a figure, nested or in Base64."""
    if isinstance(part, Mapping) and "bdata" in part:
        try:
            return int(_decode_array(part).size)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInputError(
                "An array in a figure does not match its stated type."
            ) from error
    return sum(1 for _ in _flatten(part))
