"""Journeys through the page of audits in a real Chromium: a file, a real store, a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from audited import make_chroma_of, write_jsonl
from browsing import Visit, files_containing, headline, sync_api

from leakscope.core.encoders.transformer import TransformerEncoder

pytestmark = pytest.mark.browser
SECRET = "Tarnquell"
N = 32


@pytest.fixture(scope="module")
def letters(minilm: TransformerEncoder, bundled: list[str]) -> tuple[list[str], np.ndarray]:
    texts = [f"{SECRET} wrote: {text}" for text in bundled[5::140][:N]]
    return texts, minilm.encode(texts)


def audit(page: sync_api.Page) -> None:
    page.get_by_role("button", name="Audit these vectors").click()
    sync_api.expect(page.get_by_role("button", name="Report, HTML")).to_be_visible()


def test_the_example_fits_and_opens_with_its_answer(fitting: Visit) -> None:
    page = fitting.open("/audit").page
    sync_api.expect(headline(page)).to_contain_text("of the words that it can name")
    page.locator(".js-plotly-plot").first.wait_for()


def test_a_file_comes_to_a_report_in_few_clicks(
    visit: Visit, server: tuple[str, Path], tmp_path: Path, letters: tuple[list[str], np.ndarray]
) -> None:
    page = visit.open("/audit").page
    given = write_jsonl(tmp_path / "letters.jsonl", *letters)
    page.locator("input[type=file]").first.set_input_files(given)  # 1
    page.locator(
        "label", has_text="Look for personal data"
    ).click()  # 2: minutes, which other tests wait for
    page.get_by_role("button", name="Audit these vectors").click()  # 3
    page.wait_for_function("() => location.search.includes('job=')")
    sync_api.expect(page.get_by_role("button", name="Report, PDF")).to_be_enabled()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Report, PDF").click()  # 4
    report = Path(saved.value.path()).read_bytes()
    assert report.startswith(b"%PDF") and report.count(b"/Type /Page\n") == 1
    sync_api.expect(headline(page)).to_contain_text("of the words that it can name")
    visit.fits_both()
    log, home = server[1].read_text(), server[1].parent
    assert SECRET not in log
    assert files_containing(home, SECRET.encode()) == [], "what was uploaded is on the disk"


def test_a_database_of_this_computer_is_audited(
    visit: Visit, tmp_path: Path, letters: tuple[list[str], np.ndarray]
) -> None:
    place = make_chroma_of(tmp_path, *letters)
    page = visit.open("/audit").page
    page.get_by_role("radio", name="A path or a store").click()
    box = page.get_by_role("textbox", name="Path or store")
    box.fill(place)
    box.press("Enter")
    page.locator("label", has_text="Look for personal data").click()
    audit(page)
    sync_api.expect(headline(page)).to_contain_text("of the words that it can name")
    page.get_by_text("Show the words").click()
    sync_api.expect(page.get_by_text("Not tested", exact=True)).to_be_visible()
    visit.fits_both()
