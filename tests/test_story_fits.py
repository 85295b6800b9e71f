"""Slides of the stories that ship: what they rest on can be read, and all fits the window."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from browsing import PATIENCE, open_tab, sync_api
from pptx import Presentation
from pptx.util import Pt

from leakscope.core.findings.prose import Block, Run
from leakscope.core.story import pptx
from leakscope.core.story.deck import make_deck
from leakscope.core.story.html import html_report
from leakscope.core.story.shipped import shipped_stories

LEAST_PIXELS, LEAST_POINTS = 14, 11
"""Of letters on a screen, and in a file for another one."""

_HIDDEN = """() => {
  const bottoms = [...document.querySelector(".slide.now").children].map(
    (part) => part.getBoundingClientRect().bottom);
  return Math.max(...bottoms) - document.querySelector(".bar").getBoundingClientRect().top;
}"""
_NEXT_FRAME = "() => new Promise(on => requestAnimationFrame(() => requestAnimationFrame(on)))"
_SMALLEST = """() => Math.min(...[...document.querySelectorAll(
  ".slide.now :is(.facts, .caveat, .repeat, .live)")].map(
    (part) => parseFloat(getComputedStyle(part).fontSize)))"""


@pytest.mark.browser
@pytest.mark.parametrize("name", list(shipped_stories()))
def test_a_slide_fits_a_projector_and_its_facts_can_be_read(
    browser: sync_api.BrowserContext, tmp_path: Path, name: str
) -> None:
    deck = make_deck(shipped_stories()[name], "2026-03-01")
    report = tmp_path / "report.html"
    report.write_text(html_report(deck), encoding="utf-8")
    with open_tab(browser, {"width": 1280, "height": 720}) as page:
        page.set_default_timeout(PATIENCE)
        page.goto(f"{report.as_uri()}#present")
        page.evaluate("leakscope.ready")
        for shown in deck.pages:
            page.keyboard.press("ArrowRight")
            page.evaluate(_NEXT_FRAME)  # the figure takes the place that is left
            assert page.evaluate(_SMALLEST) >= LEAST_PIXELS, shown.heading
            assert page.evaluate(_HIDDEN) <= 0, f"{shown.heading} goes on below the bar"


@pytest.mark.parametrize(("n_facts", "n_doubts"), [(124, 80), (20, 130), (140, 5), (0, 0)])
def test_the_foot_of_a_slide_is_shared_so_that_nothing_is_cut(n_facts: int, n_doubts: int) -> None:
    facts = [Block((Run(" ".join(["evidence"] * n_facts)),))]
    doubts = [Block((Run(" ".join(["doubt"] * n_doubts)),))]
    left, right = pptx._boxes_below(facts, doubts)
    assert left[0] + left[2] < right[0] and right[0] + right[2] <= 13.34
    for blocks, box in ((facts, left), (doubts, right)):
        texts = [block.text for block in blocks]
        assert pptx.fits(texts, box, pptx.LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(shipped_stories()))
def test_what_a_slide_of_powerpoint_rests_on_is_not_too_small(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures are none of it: without a browser it is the same text."""
    monkeypatch.setattr(pptx, "draw_pictures", lambda *_: {})
    deck = make_deck(shipped_stories()[name], "2026-03-01")
    show = Presentation(io.BytesIO(pptx.pptx_report(deck)))
    for page, slide in zip(deck.pages, list(show.slides)[1:], strict=False):
        below = [s for s in slide.shapes if s.has_text_frame and s.top > show.slide_height * 0.7]
        assert len(below) == (2 if page.shown or page.commands else 1), page.heading
        for shape in below:
            runs = [run for p in shape.text_frame.paragraphs for run in p.runs]
            assert min(run.font.size for run in runs) >= Pt(LEAST_POINTS), page.heading
            assert "…" not in shape.text_frame.text.removesuffix("…”"), "nothing is cut short"
        if page.commands:
            assert page.commands[0] in below[0].text_frame.text
