"""The journey of a sentence that is read back: it grows, ends, and tells what of it is right."""

from __future__ import annotations

import re

import pytest
from browsing import Visit, sync_api

from leakscope.core.attacks.inversion import INVERSION_ATTACKS

pytestmark = pytest.mark.browser
TEXT = "My neighbour keeps two old bicycles in her garden shed."
TITLE = INVERSION_ATTACKS["reconstruct"].title

WATCHED = """() => {
    window.seen = [];
    new MutationObserver(() => {
        const drawn = document.querySelectorAll(
            '.st-key-card-reconstruct [data-testid="stHtml"] > .ls-sentence');
        for (const one of drawn)
            if (window.seen.at(-1) !== one.textContent) window.seen.push(one.textContent);
    }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
"""Writes down each sentence that stands on the card."""


def test_a_sentence_is_read_back_step_by_step(visit: Visit) -> None:
    page = visit.open("/inversion", text=TEXT, attack="reconstruct").page
    button = page.get_by_role("button", name=f"Run {TITLE.lower()}")
    button.wait_for()
    page.evaluate(WATCHED)
    button.click()
    card = visit.answered(TITLE)
    seen = page.evaluate("window.seen")
    assert len(seen) >= 2, "it grew while it was read"
    sync_api.expect(card.get_by_text("The reconstructed sentence, cosine")).to_be_visible()
    told = card.get_by_text(re.compile(r"^\d+ of its \d+ words are in the text, \d+ of them"))
    counts = list(map(int, re.findall(r"\d+", told.first.inner_text())))
    sentence = card.locator("[data-testid=stHtml] > .ls-sentence").first
    assert sentence.locator("mark.ls-hit").count() == counts[0] > 0
    assert sentence.locator("u > mark.ls-hit").count() == counts[2]
    sync_api.expect(card.get_by_text("not calibrated on text like this")).to_be_visible()
    card.get_by_text("Steps of the search").click()
    steps = card.locator(".ls-steps > li").filter(visible=True)
    sync_api.expect(steps.first).to_contain_text("Before the first query")
    sync_api.expect(steps.last).to_contain_text(sentence.inner_text())
    visit.fits_both()
