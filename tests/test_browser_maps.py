"""Reports of many maps in a real Chromium, which keeps about 16 programs of WebGL and no more."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import PATIENCE, open_tab, sync_api
from PIL import Image
from test_thinning import N, as_pinned, deck_of

from leakscope.core.projection import ProjectionSpec, project
from leakscope.core.story.html import html_report

pytestmark = pytest.mark.browser


def a_map(n_components: int, n: int = N) -> dict[str, Any]:
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    return as_pinned(project(vectors, ProjectionSpec(method="pca", n_components=n_components)))


def opened(
    page: sync_api.Page, folder: Path, *figures: dict[str, Any], at: str = ""
) -> list[sync_api.Locator]:
    """Return the figures of a report, once all of them are drawn."""
    report = folder / "report.html"
    report.write_text(html_report(deck_of(*figures)), encoding="utf-8")
    page.set_default_timeout(PATIENCE)
    page.goto(f"{report.as_uri()}{at}")
    page.evaluate("leakscope.ready")
    return page.locator("[data-figure]").all()


def is_seen(place: sync_api.Locator, least: int) -> bool:
    """Return whether at least so many pixels of a figure are neither grey nor white, soon."""
    place.scroll_into_view_if_needed()
    for _ in range(20):
        picture = Image.open(io.BytesIO(place.screenshot())).convert("HSV")
        if (np.asarray(picture)[..., 1] > 100).sum() > least:
            return True
        place.page.wait_for_timeout(100)
    return False


LEGEND = 2_000
"""Pixels that are coloured where the legend alone is seen: 501, in a window of this width."""


def test_of_many_maps_each_is_seen(browser: sync_api.BrowserContext, tmp_path: Path) -> None:
    with open_tab(browser) as page:
        places = opened(page, tmp_path, *[a_map(2)] * 12)  # each takes two programs
        assert len(places) == 12 and page.locator("canvas").count() == 0
        assert all(is_seen(place, 10 * LEGEND) for place in places)


def test_of_many_maps_that_turn_the_first_do_and_the_others_are_pictures(
    browser: sync_api.BrowserContext, tmp_path: Path
) -> None:
    with open_tab(browser) as page:
        places = opened(page, tmp_path, *[a_map(3, 600)] * 8)
        kinds = ["canvas" if each.locator("canvas").count() else "img" for each in places]
        assert kinds == ["canvas"] * 6 + ["img"] * 2
        assert all(is_seen(place, LEGEND) for place in places)
        page.evaluate("leakscope.forPrint()")
        last = places[-1].locator("img").bounding_box()
        frame = places[-1].bounding_box()
        assert last and frame and last["height"] <= frame["height"] + 1


EARLY = """addEventListener("DOMContentLoaded", () =>
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" })))"""
"""Steps on to the first figure while it is not drawn yet."""

PLACES = """() => ["figure .legend", "figure", "facts"]
  .map(part => document.querySelector(`.slide.now .${part}`).getBoundingClientRect())
  .map(box => [box.top, box.bottom])"""


@pytest.mark.parametrize("is_early", [False, True])
def test_the_legend_of_a_map_that_is_presented_lies_within_its_figure_and_above_the_bar(
    browser: sync_api.BrowserContext, tmp_path: Path, is_early: bool
) -> None:
    with open_tab(browser, {"width": 1280, "height": 720}) as page:
        complaints = list[str]()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        if is_early:
            page.add_init_script(EARLY)
        opened(page, tmp_path, a_map(2), at="#present")
        if not is_early:
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(500)
        sync_api.expect(page.locator("#place")).to_have_text("2 of 2")
        (top, bottom), (of_figure, end), (below, _) = page.evaluate(PLACES)
        bar = page.locator(".bar").bounding_box()
        assert bar and of_figure < top < bottom <= end + 1 <= below + 1 <= bar["y"] + 1
        assert complaints == []
