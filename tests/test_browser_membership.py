"""Journeys through the page of membership, an upload included, in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browsing import Visit, files_containing, headline, sync_api
from test_cli_membership import answers

pytestmark = pytest.mark.browser
SECRET = "The violinist hid the ledger behind the organ."


def opened(visit: Visit, **params: str) -> sync_api.Page:
    page = visit.open("/membership", **params).page
    sync_api.expect(headline(page)).to_be_visible()
    sync_api.expect(page.get_by_text("What this does not show")).to_be_visible()
    return page


def open_own(page: sync_api.Page) -> None:
    page.get_by_role("tab", name="Your own classifier").click()


def scores_heading(page: sync_api.Page) -> sync_api.Locator:
    return page.get_by_text("Scores of members and non-members").filter(visible=True).first


def shows_scores(page: sync_api.Page) -> None:
    sync_api.expect(scores_heading(page)).to_be_visible()
    page.locator(".js-plotly-plot").last.wait_for()


def test_an_upload_is_attacked_and_saved_but_not_kept(
    visit: Visit,
    server: tuple[str, Path],
    tmp_path: Path,
) -> None:
    page = opened(visit)
    open_own(page)
    content = answers().assign(text=SECRET).to_csv(index=False).encode()
    given = {"name": "answers.csv", "mimeType": "text/csv", "buffer": content}
    page.locator("input[type=file]").set_input_files(given)
    shows_scores(page)
    told = page.get_by_text("240 samples of 40 users").filter(visible=True)
    sync_api.expect(told.first).to_be_visible()
    page.get_by_role("tab", name="What a verdict is worth").click()
    sync_api.expect(page.get_by_text("According to the table")).to_be_visible()
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    download.value.save_as(tmp_path / "json")
    found = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    assert found["n"] == 240 and found["sample"]["bavaria"]["tpr_at_fpr"]["0.001"] is None
    log, home = server[1].read_text(), server[1].parent
    assert SECRET not in log
    assert files_containing(home, SECRET.encode()) == [], "an upload is on the disk"


def test_the_made_up_example_fits_both_widths_and_themes(visit: Visit) -> None:
    page = opened(visit, prior="101")
    open_own(page)
    page.get_by_role("button", name="Show a made-up example").click()
    sync_api.expect(page.get_by_text("Simulated.").filter(visible=True).first).to_be_visible()
    shows_scores(page)
    page.get_by_role("tab", name="What a verdict is worth").click()
    sync_api.expect(page.get_by_text("If one in 101 is").filter(visible=True).first).to_be_visible()
    visit.fits_both()
