"""Journeys through the page of representations in a real Chromium."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from browsing import PATIENCE, Visit, choose_option, files_containing, headline, sync_api

pytestmark = pytest.mark.browser
SECRET = "The violinist told police that the government paid for the hospital."
LABELS = "document.querySelector('.js-plotly-plot').data.find(t => t.mode === 'markers+text')"
QUICK = {"encoder": "tfidf,hashing", "corpus": "lee", "n": "1000"}


def opened(visit: Visit, **params: str) -> sync_api.Page:
    page = visit.open("/representations", **params).page
    sync_api.expect(headline(page)).to_contain_text("leak")
    page.locator(".js-plotly-plot").first.wait_for()
    return page


def press(page: sync_api.Page, n: int) -> None:
    page.get_by_role("button", name=f"Invert from {n} encoders").click()


def answered(page: sync_api.Page, n: int) -> sync_api.Locator:
    """Wait until n cards are there; fitting takes its time on a busy machine."""
    cards = page.locator("[class*='st-key-card-'] .ls-sentence").filter(visible=True)
    sync_api.expect(cards).to_have_count(n, timeout=2 * PATIENCE)
    return cards


def press_if_new(page: sync_api.Page, n: int) -> None:
    """Press the button, unless a test before had these encoders fitted: then they answer."""
    button = page.get_by_role("button", name=f"Invert from {n} encoders")
    card = page.locator("[class*='st-key-card-'] .ls-sentence").first
    sync_api.expect(button.or_(card)).to_be_visible()
    if button.is_visible():
        button.click()


def names(page: sync_api.Page) -> list[str]:
    found = page.evaluate(f"() => {LABELS}.text")
    return sorted(found)


def test_choices_change_figure_and_tables(visit: Visit) -> None:
    page = opened(visit, encoder="tfidf,hashing,minilm", domain="in", view="titles")
    assert names(page) == ["MiniLM", "hashing", "tf-idf"]
    page.get_by_role("radio", name="whole texts").click()
    sync_api.expect(page.get_by_text("utility: whole texts of news")).to_be_visible()
    choose_option(page.get_by_role("combobox", name="Encoders"), "LSA on tf-idf")
    page.wait_for_function(f"() => {LABELS}.text.includes('LSA tf-idf')")


def test_the_numbers_download_as_csv(visit: Visit, tmp_path: Path) -> None:
    page = opened(visit)
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.locator(".st-key-representations-csv").get_by_role("button").first.click()
    download.value.save_as(tmp_path / "csv")
    rows = list(csv.DictReader((tmp_path / "csv").open(encoding="utf-8-sig", newline="")))
    assert len(rows) > 3 and float(rows[0]["leakage, F1"]) > float(rows[0]["guessing"])


def test_a_sentence_is_read_from_every_encoder(
    visit: Visit,
    server: tuple[str, Path],
) -> None:
    page = opened(visit, **QUICK)
    page.get_by_role("textbox", name="Your sentence").fill(SECRET)
    press_if_new(page, 2)
    cards = answered(page, 2)
    sync_api.expect(cards.first).to_contain_text("violinist")
    sync_api.expect(page.locator("mark", has_text="government").first).to_be_visible()
    assert "text=" not in page.url, "what is typed stays out of the address"
    page.get_by_role("textbox", name="Your sentence").fill("Police closed the hospital.")
    sync_api.expect(cards.first).to_contain_text("closed")
    home = server[1].parent
    assert files_containing(home, b"violinist told") == [], "what was typed is on the disk"


def test_fitting_survives_a_reload(visit: Visit) -> None:
    page = opened(visit, encoder="tfidf,glove", corpus="lee", n="1000")
    press(page, 2)
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    answered(page, 2)


def test_fitting_can_be_stopped(visit: Visit) -> None:
    page = opened(visit, encoder="tfidf,doc2vec,glove", corpus="wikipedia", n="5000")
    press(page, 3)
    page.get_by_role("button", name="Stop").click()
    sync_api.expect(page.get_by_text("Finished encoders are kept")).to_be_visible()
    sync_api.expect(page.get_by_role("button", name="Invert from 3 encoders")).to_be_visible()


def test_the_page_fits_width_and_theme(fitting: Visit) -> None:
    page = opened(fitting, **QUICK)
    press_if_new(page, 2)
    answered(page, 2)
