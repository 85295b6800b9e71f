"""Journeys through the page of names in a real Chromium."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from browsing import Visit, files_containing, headline, sync_api

pytestmark = pytest.mark.browser
SECRET = "Tarnquell hid the ledger behind the organ."


def opened(visit: Visit, **params: str) -> sync_api.Page:
    page = visit.open("/names", **params).page
    sync_api.expect(headline(page)).to_contain_text(re.compile(r"From \d+ of \d+ vectors"))
    page.locator(".js-plotly-plot").first.wait_for()
    return page


def test_a_click_on_a_cell_shows_its_words(visit: Visit) -> None:
    page = opened(visit)
    chart = page.locator(".st-key-names-map .js-plotly-plot")
    chart.locator(".draglayer .nsewdrag").wait_for()
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").bounding_box()
    assert box is not None
    # The last row and the second column of five by five.
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.9)
    sync_api.expect(page.get_by_text("was recovered from").nth(0)).to_contain_text("Mercer")
    shown = page.locator(".ls-sentence").filter(has_text="clock of the town hall")
    sync_api.expect(shown.first).to_contain_text("Daniel Mercer")


def test_typed_names_are_compared_and_saved_but_not_kept(
    visit: Visit,
    server: tuple[str, Path],
    tmp_path: Path,
) -> None:
    page = opened(visit)
    page.get_by_role("textbox", name="Names, one per line").fill("Tarnquell\n=Weber\nAda Mercer")
    page.get_by_role("textbox", name="Sentences, one per line").fill(SECRET)
    page.keyboard.press("Control+Enter")
    sync_api.expect(page.get_by_text("because it can name none of them")).to_be_visible()
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "csv")
    rows = list(csv.reader((tmp_path / "csv").open(encoding="utf-8-sig", newline="")))
    assert len(rows) == 4 and rows[2][1] == "'=Weber"
    assert "text=" not in page.url, "what is typed stays out of the address"
    log, home = server[1].read_text(), server[1].parent
    assert SECRET not in log
    assert files_containing(home, b"Tarnquell") == [], "what was typed is on the disk"


def test_a_slow_attack_survives_a_reload(visit: Visit) -> None:
    # Few vectors: the attack encodes a hundred texts for each, and other work may go on beside.
    text = "Ada Quell won the case in Leeds.\nTom Orrin lost his boat."
    page = visit.open("/names", attack="search", text=text, names="Ada Quell\nTom Orrin").page
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    sync_api.expect(headline(page)).to_contain_text(
        re.compile(r"(From|recovered the surname from) \d+ of \d+")
    )
    sync_api.expect(page.get_by_text("(the re-embedding search)").first).to_be_visible()


def test_the_page_fits_width_and_theme(fitting: Visit) -> None:
    opened(fitting)
