"""Journeys through the page of attributes in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Visit, choose_option, files_containing, sync_api
from test_page_attributes import as_csv, lines

pytestmark = pytest.mark.browser
SECRET = "Tarnquell hid the ledger behind the organ."


def infer(page: sync_api.Page) -> None:
    page.get_by_role("button", name="Infer", exact=True).click()


def answered(page: sync_api.Page) -> None:
    sync_api.expect(page.get_by_role("heading", name="Which labels are confused?")).to_be_visible()


def test_a_corpus_is_inferred_over_a_reload(visit: Visit) -> None:
    page = visit.open("/attributes", corpus="articles", labels="5", each="5").page
    infer(page)
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    answered(page)
    page.get_by_role("button", name="Draw an unseen text").click()
    sync_api.expect(page.get_by_text("Likeliest article")).to_be_visible()
    page.locator(".js-plotly-plot").nth(3).wait_for()
    visit.fits_both()


def test_an_upload_is_inferred_but_not_kept(
    visit: Visit,
    server: tuple[str, Path],
) -> None:
    page = visit.open("/attributes", labels="5", each="5").page
    choose_option(page.get_by_role("combobox", name="Texts and attribute"), "Your own file")
    content = as_csv([*lines(), (SECRET, "Ada", "0/9")])
    given = {"name": "mine.csv", "mimeType": "text/csv", "buffer": content.encode()}
    page.locator("input[type=file]").set_input_files(given)
    infer(page)
    answered(page)
    page.get_by_role("textbox", name="A text").fill(SECRET)
    page.keyboard.press("Control+Enter")
    sync_api.expect(page.get_by_text("Likeliest author")).to_be_visible()
    assert "text=" not in page.url, "what is typed stays out of the address"
    log, home = server[1].read_text(), server[1].parent
    assert SECRET not in log
    assert files_containing(home, b"Tarnquell") == [], "what was uploaded is on the disk"
