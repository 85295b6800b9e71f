"""Reports of many maps in a real Chromium, which keeps about 16 programs of WebGL and no more."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import PATIENCE, a_page, sync_api
from PIL import Image
from test_thinning import N, as_pinned, deck_of

from core.projection import ProjectionSpec, project
from core.story.html import html_report

pytestmark = pytest.mark.browser


def a_map(n_components: int, n: int = N) -> dict[str, Any]:
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32)
    return as_pinned(project(vectors, ProjectionSpec(method="pca", n_components=n_components)))


def opened(page: sync_api.Page, folder: Path, *figures: dict[str, Any]) -> list[sync_api.Locator]:
    """Return the figures of a report, once all of them are drawn."""
    report = folder / "report.html"
    report.write_text(html_report(deck_of(*figures)), encoding="utf-8")
    page.set_default_timeout(PATIENCE)
    page.goto(report.as_uri())
    page.evaluate("leakscope.ready")
    return page.locator("[data-figure]").all()


def n_coloured(place: sync_api.Locator) -> int:
    """Return how many pixels of a figure are neither grey nor white."""
    place.scroll_into_view_if_needed()
    place.page.wait_for_timeout(300)
    return n_bright(place.screenshot())


def n_bright(picture: bytes) -> int:
    return int((np.asarray(Image.open(io.BytesIO(picture)).convert("HSV"))[..., 1] > 100).sum())


LEGEND = 2_000
"""Pixels that are coloured where the legend alone is seen: 501, in a window of this width."""


def test_of_many_maps_each_is_seen(browser: sync_api.BrowserContext, tmp_path: Path) -> None:
    with a_page(browser) as page:
        places = opened(page, tmp_path, *[a_map(2)] * 21)
        assert len(places) == 21 and page.locator("canvas").count() == 0
        assert min(map(n_coloured, places)) > 10 * LEGEND


def test_of_many_maps_that_turn_the_first_do_and_the_others_are_pictures(
    browser: sync_api.BrowserContext, tmp_path: Path
) -> None:
    with a_page(browser) as page:
        places = opened(page, tmp_path, *[a_map(3, 600)] * 8)
        kinds = ["canvas" if each.locator("canvas").count() else "img" for each in places]
        assert kinds == ["canvas"] * 6 + ["img"] * 2
        assert min(map(n_coloured, places)) > LEGEND
        page.evaluate("leakscope.forPrint()")
        last = places[-1].locator("img").bounding_box()
        frame = places[-1].bounding_box()
        assert last and frame and last["height"] <= frame["height"] + 1
