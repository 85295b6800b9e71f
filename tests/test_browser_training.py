"""Journeys through the page of training in a real Chromium, with invented rows."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from browsing import Visit, headline, sync_api

pytestmark = pytest.mark.browser


def drawn(page: sync_api.Page, key: str) -> sync_api.Locator:
    figure = page.locator(f".st-key-{key} .js-plotly-plot .main-svg").first
    figure.wait_for()
    return figure


def test_each_part_fits_width_and_theme(fitting: Visit) -> None:
    page = fitting.open("/training").page
    sync_api.expect(headline(page)).to_contain_text("a new attacker reaches F1")
    drawn(page, "adversary-figure")
    fitting.fits_both()
    page.get_by_role("radio", name="Under noise", exact=True).click()
    drawn(page, "under-noise-figure")
    sync_api.expect(headline(page)).to_contain_text("Replacing words")
    fitting.fits_both()
    page.get_by_role("radio", name="Differential privacy").click()
    drawn(page, "private-training-figure")
    drawn(page, "training-exposure")
    fitting.fits_both()
    page.get_by_role("radio", name="Pretrained under noise").click()
    drawn(page, "pretrained-figure")
    drawn(page, "training-loss")
    fitting.fits_both()


def test_a_link_opens_what_private_training_costs(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("/training", part="private").page
    drawn(page, "private-training-figure")
    sync_api.expect(page.get_by_text("The goals").first).to_be_visible()
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.locator(".st-key-private-training-csv button").first.click()
    download.value.save_as(tmp_path / "csv")
    rows = list(csv.DictReader((tmp_path / "csv").open(encoding="utf-8-sig", newline="")))
    assert {"∞", "8", "1"} <= {row["ε for one text"] for row in rows}


def test_a_link_opens_a_view_and_a_choice_leaves_it(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(
        "/training", part="adversary", hides="attribute", encoder="adversarial_lstm"
    ).page
    sync_api.expect(headline(page)).to_contain_text("new attacker infers the author")
    drawn(page, "adversary-figure")
    page.get_by_role("radio", name="Words").click()
    sync_api.expect(headline(page)).to_contain_text("new attacker reaches F1")
    page.wait_for_function("() => !location.search.includes('hides=')")
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as download:
        page.locator(".st-key-adversary-csv button").first.click()
    download.value.save_as(tmp_path / "csv")
    rows = list(csv.DictReader((tmp_path / "csv").open(encoding="utf-8-sig", newline="")))
    assert [row["defence"] for row in rows] == ["no defence", "λ_w 0.3", "λ_w 3"]
    assert all(re.match(r"\d", row["new attacker: multi-set prediction"]) for row in rows)


def test_presented_the_controls_are_hidden(visit: Visit) -> None:
    page = visit.open("/training", part="pretraining", sends="text_to_text").page
    drawn(page, "pretrained-figure")
    page.get_by_role("button", name="Present").click()
    sync_api.expect(page.get_by_role("radio", name="Under noise", exact=True)).to_be_hidden()
    drawn(page, "pretrained-figure")
    page.get_by_role("button", name="Leave presentation").wait_for()
    page.keyboard.press("Escape")
    sync_api.expect(page.get_by_role("radio", name="Under noise", exact=True)).to_be_visible()


def test_the_trap_is_stopped_and_then_sprung(visit: Visit) -> None:
    page = visit.open("/training", part="adversary", weight="10").page
    page.get_by_role("button", name="Train against an attacker now").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    again = page.get_by_role("button", name="Train again")
    again.click()
    # The address names the job that was stopped until the server has heard of the other.
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.wait_for_function("() => location.search.includes('job=')")
    page.reload()
    found = page.get_by_role("heading", name="After training to hide", level=3)
    sync_api.expect(page.get_by_text("where nothing was hidden from it")).to_be_visible()
    sync_api.expect(found).to_contain_text("a new attacker reaches F1")
    drawn(page, "training-live")
