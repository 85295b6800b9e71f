"""Length of each page before anything is opened, and where its figure stands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks import Measurement
from benchmarks.dashboard.jobs import server
from benchmarks.dashboard.page_ready import find_chromium, running_chromium
from leakscope.core.pages import PAGES

WIDE, NARROW = (1280, 800), (390, 844)
_LIMITS = {WIDE: (3.5, 1.0), NARROW: (5.0, 1.0)}
"""Most screens of a page, and the screen on which its figure begins, by window."""
_MOST_WORDS = 600
_N_VISITS = 3

_SIZE = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  const how = {opacityProperty: true, visibilityProperty: true};
  const shown = element => element.checkVisibility(how);
  const skipped = '.js-plotly-plot, [data-testid=stDataFrame], svg, ' +
    '[data-testid=stIconMaterial], details:not([open]) > :not(summary)';
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  let words = 0;
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!parent || parent.closest(skipped) || !shown(parent)) continue;
    words += (walker.currentNode.textContent.match(/[\\p{L}\\p{N}]+/gu) || []).length;
  }
  const top = name => {
    const found = [...main.querySelectorAll(name)].filter(shown);
    if (!found.length) return null;
    return found[0].getBoundingClientRect().top + main.scrollTop;
  };
  const figure = '[data-testid=stPlotlyChart], .ls-sentence, [data-testid=stDataFrame], ' +
    '.st-key-map-frame';
  return {height: main.scrollHeight, words, figure: top(figure)};
}"""


@dataclass(frozen=True)
class PageSize:
    """The size of a page in a window.

    Attributes
    ----------
    screens : float
        Its height in heights of the window.
    words : int
        Words that are shown before anything is opened, without those of figures and tables.
    figure : float or None
        Screens above its first figure; None where it has none.
    seconds : float
        Until the page is at rest, on a further visit.
    """

    screens: float
    words: int
    figure: float | None
    seconds: float


def measure() -> list[Measurement]:
    """Measure the length, text and loading time of all pages in a wide and a narrow window."""
    found = find_chromium()
    if found is None:
        return []
    rows = []
    with running_chromium(found) as browser, server() as address:
        for window in (WIDE, NARROW):
            for name in PAGES:
                rows += _measurements(name, window, measure_page(browser, address, name, window))
    return rows


def measure_page(browser: Any, address: str, name: str, window: tuple[int, int]) -> PageSize:
    """Open a page several times; return its size and its shortest loading time."""
    context = browser.new_context(viewport={"width": window[0], "height": window[1]})
    found: dict[str, Any] = {}
    taken = []
    for _ in range(_N_VISITS):
        page = context.new_page()
        page.set_default_timeout(180_000)
        start = time.perf_counter()
        page.goto(f"{address}/{'' if name == 'overview' else name}")
        page.locator("h1").first.wait_for()
        found = _measure_at_rest(page)
        taken.append(time.perf_counter() - start - found.pop("waited"))
        page.close()
    context.close()
    height = window[1]
    top = found["figure"]
    return PageSize(
        found["height"] / height,
        found["words"],
        None if top is None else top / height,
        min(taken),
    )


def _measure_at_rest(page: Any, calm: float = 1.5) -> dict[str, Any]:
    """Wait until a page stops changing; return its size and the seconds waited since then."""
    last: dict[str, Any] = {}
    since = time.perf_counter()
    end = since + 120
    while time.perf_counter() < end:
        is_running = page.locator("[data-testid=stStatusWidget]").count()
        now = page.evaluate(_SIZE)
        if is_running or now != last:
            last, since = now, time.perf_counter()
        elif time.perf_counter() - since >= calm:
            break
        page.wait_for_timeout(100)
    return {**last, "waited": time.perf_counter() - since}


def _measurements(name: str, window: tuple[int, int], size: PageSize) -> list[Measurement]:
    """Turn a page's size in one window into measurements with goals."""
    most, figure = _LIMITS[window]
    found: list[tuple[str, float | None, str, float]] = [
        ("length", size.screens, "screens", most),
        ("above its figure", size.figure, "screens", figure),
    ]
    if window == WIDE:
        found += [
            ("text", size.words, "words", _MOST_WORDS),
            ("least time until it is at rest, on a further visit", size.seconds, "s", 2),
        ]
    return [
        Measurement(
            name=f"{name} at {window[0]} px: {what}",
            value=value,
            unit=unit,
            at_most=goal,
            n=_N_VISITS if unit == "s" else 1,
        )
        for what, value, unit, goal in found
        if value is not None
    ]
