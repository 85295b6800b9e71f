"""Journeys through the page of memorisation in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browsing import Visit, files_containing, headline, sync_api

pytestmark = pytest.mark.browser
CANARY = "Tarnquell keeps the pin {digits:2}"
TINY = {"canary": CANARY, "corpus": "lee", "n": "200", "epochs": "2", "draw": "100"}


def plant(page: sync_api.Page) -> None:
    page.get_by_role("button", name="Plant it and train").click()
    heading = page.get_by_role("heading", name="of 6.6 bits")
    sync_api.expect(heading).to_be_visible()
    page.locator(".st-key-memorise-growth .js-plotly-plot").wait_for()


def test_what_is_typed_is_planted_and_saved_but_not_kept(
    visit: Visit,
    server: tuple[str, Path],
    tmp_path: Path,
) -> None:
    page = visit.open("/memorisation", **{**TINY, "canary": "x 1"}).page
    sync_api.expect(headline(page)).to_be_visible()
    page.get_by_role("textbox", name="Your canary").fill(CANARY)
    page.keyboard.press("Enter")
    plant(page)
    sync_api.expect(page.get_by_role("heading", name="What sampling reveals")).to_be_visible()
    assert "canary=" not in page.url, "what is typed stays out of the address"
    page.reload()
    sync_api.expect(page.get_by_role("heading", name="of 6.6 bits")).to_be_visible()
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    download.value.save_as(tmp_path / "json")
    saved = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert saved["n_values"] == 100 and len(saved["by_epoch"]) == 2
    log, home = server[1].read_text(), server[1].parent
    assert "Tarnquell" not in log
    assert files_containing(home, b"Tarnquell") == [], "what was typed is on the disk"
    visit.fits_both()


def test_a_job_is_watched_survives_a_reload_and_stops(visit: Visit) -> None:
    page = visit.open("/memorisation", **{**TINY, "n": "2000", "epochs": "50"}).page
    page.get_by_role("button", name="Plant it and train").click()
    page.wait_for_function("() => location.search.includes('job=')")
    page.locator(".st-key-memorise-live .js-plotly-plot").wait_for()
    page.reload()
    sync_api.expect(page.get_by_role("textbox", name="Your canary")).to_have_value(CANARY)
    page.locator(".st-key-memorise-live .js-plotly-plot").wait_for()
    page.get_by_role("button", name="Stop").click()
    sync_api.expect(page.get_by_role("button", name="Train again")).to_be_visible()
