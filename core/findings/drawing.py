"""Figures as plain data for stories, checked so that they only draw and load or run nothing.

A story may come from anyone. Only the kinds of charts that the pages draw are accepted, and in
texts only the few tags that Plotly needs. Anything that could fetch a picture, open a link or run
code is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from leakscope.core.errors import InvalidInputError
from leakscope.core.findings.bounds import check_bounds, with_few_ticks

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
    """Return a figure with at most 12 legend entries, highlighted ones first.

    A longer legend would shrink the figure and be cut off. Highlighted traces have a `legendrank`
    below Plotly's default of 1000. The last entry gives the number of omitted ones.
    """
    data, shapes = list(figure["data"]), figure.get("layout", {}).get("shapes") or ()
    listed = [i for i, trace in enumerate(data) if trace.get("name") and _has_legend_entry(trace)]
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


def _has_legend_entry(trace: Mapping[str, Any]) -> bool:
    """Return whether a trace has a legend entry."""
    return trace.get("showlegend") is not False and trace.get("type") != "heatmap"


def checked_figure(found: Any) -> dict[str, Any]:
    """Return a copy of a figure with only drawable data and safe texts.

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
        self.n_left = _MOST_NODES

    def clean(self, value: Any, depth: int, name: str = "") -> Any:
        """Return a checked copy of a nested value."""
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
        """Return the name of a figure's part, or raise InvalidInputError if it is not allowed."""
        if not isinstance(name, str) or _FETCHING.match(name) or len(name) > 60:
            raise InvalidInputError(f"A figure must not hold {str(name)[:40]!r}: no page draws it.")
        return name


def _clean_text(value: str, name: str) -> str:
    """Return a text with unsafe markup escaped, or raise InvalidInputError if it is too long."""
    if name == "bdata":
        if len(value) > _MOST_BASE64 or not _BASE64.fullmatch(value):
            raise InvalidInputError("An array of a figure is not Base64, or is too large.")
        return value
    if len(value) > _MOST_LETTERS:
        raise InvalidInputError(
            f"A text of a figure must have at most {_MOST_LETTERS:,} characters."
        )
    return _ENTITY.sub("&amp;", _NOT_MARKS.sub("&lt;", value))
