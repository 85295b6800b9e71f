"""Pages as slides open them live, and what they show: for the tests that compare the two."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.story.format import Slide
from core.story.views import VIEWS
from dashboard.inversion import measured

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
ROUNDED = 0.56
"""How far a number of one decimal may lie from the same one in whole numbers."""


def opened(app: AppTest, view: str, slide: Slide, asked: dict[str, str]) -> AppTest:
    """Return the page as the slide opens it live."""
    app.session_state[measured.OPEN_KEY] = view in measured.VIEWS
    app.switch_page(str(ROOT / "pages" / f"{VIEWS[view].page}.py"))
    for name, value in (dict(slide.live) or asked).items():
        app.query_params[name] = value
    page = app.run()
    assert not page.exception and not page.error
    return page


def text_of(page: AppTest) -> str:
    """Return all that a page says in words, without markup."""
    kinds = (page.title, page.header, page.subheader, page.markdown, page.caption, page.info)
    said = [part.value for kind in kinds for part in kind]
    said += [re.sub(r"<[^>]+>", " ", part.value) for part in page.html]
    return unmarked(" ".join(said))


def unmarked(text: str) -> str:
    """Return what is read of Markdown."""
    return unescape(text).replace("\\", "").replace("*", "")


def tables_of(page: AppTest) -> list[list[tuple[str, ...]]]:
    """Return the cells of each table of a page, as text."""
    return [[tuple(map(str, row)) for row in frame.value.to_numpy()] for frame in page.dataframe]


def figure_of(page: AppTest, key: str) -> dict[str, Any]:
    """Return the figure of a page whose element has this key."""
    charts = [chart.proto for chart in page.get("plotly_chart")]
    found: dict[str, Any] = json.loads(next(c.spec for c in charts if c.id.endswith(f"-{key}")))
    return found


def drawn(figure: Any) -> list[tuple[Any, ...]]:
    """Return what a figure shows of numbers, trace by trace, with whose they are."""
    return [
        tuple(json.dumps(trace.get(part)) for part in ("name", "x", "y", "error_x", "error_y"))
        for trace in figure["data"]
    ]


def numbers(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in NUMBER.findall(text)]


def rows_of(page: AppTest) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the settings in the table of the trade-off, by defence and strength."""
    frame = page.dataframe[-1].value
    return {(row["defence"], row["strength"]): row for row in frame.to_dict("records")}


def is_same(said: str, value: float, interval: str) -> bool:
    """Return whether `38 [33, 42]` is what a table has with one decimal."""
    return all(
        abs(mine - theirs) <= ROUNDED
        for mine, theirs in zip(numbers(said), [value, *numbers(interval)], strict=True)
    )


def values(trace: Any) -> Any:
    """Return all numbers of a trace, its error bars too, to ten places."""
    parts = (trace.get(part) for part in ("x", "y", "z", "error_x", "error_y"))
    return json.loads(json.dumps([*parts]), parse_float=lambda said: round(float(said), 10))


def pin_of(page: AppTest, name: str) -> Slide:
    """Return what a page pins of itself."""
    page.session_state["_story_asked"] = (name, False)
    page.run()
    found: Slide = page.session_state["_story_pins"][-1].pin.slide
    return found
