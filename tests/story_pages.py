"""Pages as slides open them, and what they show, to compare pages with slides."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from leakscope.core.findings.finding import Finding
from leakscope.core.findings.registry import VIEWS
from leakscope.dashboard.inversion import explain

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
ROUNDED = 0.56
"""The largest difference between a number with one decimal and the same number as an integer."""


def open_live(app: AppTest, view: str, slide: Finding, asked: dict[str, str]) -> AppTest:
    """Open the page that a slide links to."""
    app.session_state[explain.OPEN_KEY] = view in explain.VIEWS
    app.switch_page(str(ROOT / "pages" / f"{VIEWS[view].page}.py"))
    for name, value in (dict(slide.live) or asked).items():
        app.query_params[name] = value
    page = app.run()
    assert not page.exception and not page.error
    return page


def text_of(page: AppTest) -> str:
    """Return all texts of a page, without markup."""
    kinds = (page.title, page.header, page.subheader, page.markdown, page.caption, page.info)
    texts = [part.value for kind in kinds for part in kind]
    texts += [re.sub(r"<[^>]+>", " ", part.value) for part in page.html]
    return strip_markdown(" ".join(texts))


def strip_markdown(text: str) -> str:
    """Return a Markdown text without emphasis and escapes."""
    return unescape(text).replace("\\", "").replace("*", "")


def tables_of(page: AppTest) -> list[list[tuple[str, ...]]]:
    """Return the cells of each table of a page, as text."""
    return [[tuple(map(str, row)) for row in frame.value.to_numpy()] for frame in page.dataframe]


def figure_of(page: AppTest, key: str) -> dict[str, Any]:
    """Return the figure of a page by its key."""
    charts = [chart.proto for chart in page.get("plotly_chart")]
    found: dict[str, Any] = json.loads(next(c.spec for c in charts if c.id.endswith(f"-{key}")))
    return found


def trace_data(figure: Any) -> list[tuple[Any, ...]]:
    """Return name, coordinates and error bars of each trace of a figure, as JSON."""
    return [
        tuple(json.dumps(trace.get(part)) for part in ("name", "x", "y", "error_x", "error_y"))
        for trace in figure["data"]
    ]


def numbers(text: str) -> list[float]:
    """Return the numbers in a text."""
    return [float(each.replace(",", "")) for each in NUMBER.findall(text)]


def tradeoff_rows_of(page: AppTest) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of the trade-off page's table, by defence and strength."""
    frame = page.dataframe[-1].value
    return {(row["defence"], row["strength"]): row for row in frame.to_dict("records")}


def matches_rounded(text: str, value: float, interval: str) -> bool:
    """Return whether a text such as `38 [33, 42]` rounds a value and its interval."""
    return all(
        abs(mine - theirs) <= ROUNDED
        for mine, theirs in zip(numbers(text), [value, *numbers(interval)], strict=True)
    )


def rounded_values(trace: Any) -> Any:
    """Return the coordinates and error bars of a trace, rounded to ten places."""
    parts = (trace.get(part) for part in ("x", "y", "z", "error_x", "error_y"))
    return json.loads(json.dumps([*parts]), parse_float=lambda digits: round(float(digits), 10))


def pin_page(page: AppTest, name: str) -> Finding:
    """Pin a page to the story; return the pinned finding."""
    page.session_state["_story_requested"] = (name, False)
    page.run()
    found: Finding = page.session_state["_story_pins"][-1].pin.slide
    return found
