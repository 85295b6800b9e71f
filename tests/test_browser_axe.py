"""Every page draws, and is held against the rules of axe-core in both themes."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import TELEPHONE, Visit, sync_api
from PIL import Image

from leakscope.core.story.deck import make_deck
from leakscope.core.story.html import html_report
from leakscope.core.story.shipped import open_story
from leakscope.core.studies.attributes import curves as attribute_curves
from leakscope.core.studies.membership import shipped as membership_shipped
from leakscope.core.studies.memorisation import summary as memorisation_summary
from leakscope.core.studies.training import summary as training_summary

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
MEASURED = {  # pages that draw nothing before somebody clicks, until their study was run
    "attributes": bool(attribute_curves.load_shipped()),
    "membership": membership_shipped.SHIPPED.exists(),
    "memorisation": memorisation_summary.SHIPPED.exists(),
    "training": training_summary.SHIPPED.exists(),
}
DRAWN = {"overview", "inversion", "representations", "names", "deniability", "tradeoff"}
DRAWN |= {name for name, is_measured in MEASURED.items() if is_measured}
SEVERE = ("serious", "critical")
"""What keeps somebody from reading or using a page; the order of headings is looked at besides."""

STREAMLITS = "stFileUploaderDropzone"
"""Streamlit's own uploader has a label and the role of what has none (minor): not ours to mend."""

OF_THEME = ["color-contrast", "link-in-text-block"]
"""The rules that look at colours: the others find in one theme what they find in the other."""

RUN = """async (rules) => {
  const found = await axe.run(document, {resultTypes: ['violations'],
    ...(rules.length ? {runOnly: {type: 'rule', values: rules}} : {})});
  return found.violations.map(v => ({rule: v.id, impact: v.impact, help: v.help,
    nodes: v.nodes.map(n => n.target.join(' ') + ' | ' + n.html.slice(0, 140)
                            + ' | ' + (n.any[0] || n.all[0] || n.none[0] || {}).message)}));
}"""


def violations(page: Any, rules: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return what axe-core finds on a page, by all rules or by some."""
    found: list[dict[str, Any]] = page.evaluate(RUN, rules)
    return found


TWICE: sync_api.ViewportSize = {"width": 640, "height": 400}
"""What is left of a window of 1280 by 800 for who reads at twice the size."""


@pytest.mark.parametrize("name", PAGES)
def test_no_page_breaks_a_rule(visit: Visit, name: str) -> None:
    page = visit.page
    page.add_init_script(path=AXE)
    visit.open(f"/{name}" if name != "overview" else "/")
    sync_api.expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.get_by_text("Next:").first.wait_for()  # the last thing on a page
    if name in DRAWN:
        sync_api.expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    bad = told(page, "light")
    visit.turn("dark")
    assert bad + told(page, "dark") == []
    assert brightest(page.get_by_test_id("stHeaderLogo")) > 200, "the logo stayed dark"
    visit.resize(TWICE)


def test_no_page_breaks_a_rule_on_a_telephone(visit: Visit) -> None:
    page = visit.page
    page.set_viewport_size(TELEPHONE)
    page.add_init_script(path=AXE)
    visit.open("/tradeoff")
    sync_api.expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    bad = told(page, "closed")
    page.get_by_role("button", name="Why pages differ").click()
    sync_api.expect(page.get_by_text("One encoder, several figures.")).to_be_visible()
    last = page.get_by_test_id("stPopoverBody").get_by_role("link", name="What the terms mean")
    sync_api.expect(last).to_be_visible()  # what the keyboard scrolls by is drawn last
    bad += told(page, "why pages differ")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Pages", exact=True).click()
    to = page.get_by_test_id("stPopoverBody").get_by_role("link", name="Glossary")
    sync_api.expect(to).to_be_visible()
    bad += told(page, "menu")
    to.click()
    heading = page.get_by_role("heading", level=1, name="What the terms mean")
    sync_api.expect(heading).to_be_visible()
    sync_api.expect(to).to_be_hidden()  # the menu closes behind who follows it
    visit.turn("dark")
    assert bad + told(page, "dark") == []


def test_the_page_of_stories_breaks_no_rule_with_slides_that_are_open(visit: Visit) -> None:
    page = visit.page
    page.add_init_script(path=AXE)
    visit.open("/story")
    sync_api.expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.locator(".st-key-story-use-safe-to-store button").filter(visible=True).first.click()
    sync_api.expect(page.get_by_role("heading", level=1).first).to_contain_text("Your story")
    page.get_by_role("textbox", name="Heading of slide 2").click()
    sync_api.expect(page.get_by_role("textbox", name="Speaker notes of slide 2")).to_be_visible()
    sync_api.expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    sync_api.expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    bad = told(page, "light", any_rule=True)
    visit.turn("dark")
    bad += told(page, "dark", any_rule=True)
    assert [each for each in bad if STREAMLITS not in each] == []


@pytest.mark.parametrize("shown", ["", "#present"])
def test_no_report_breaks_a_rule_or_asks_another_host(
    visit: Visit, tmp_path: Path, shown: str
) -> None:
    report, story = tmp_path / "report.html", open_story("safe-to-store")
    report.write_text(html_report(make_deck(story, "2026-03-01")), encoding="utf-8")
    page, asked = visit.page.context.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(path=AXE)
    page.goto(f"{report.as_uri()}{shown}")
    page.evaluate("leakscope.ready")
    steps = range(len(story.pins) + 1) if shown else (0,)
    bad: list[str] = []
    for i in steps:
        bad += told(page, f"slide {i}", any_rule=True)
        page.keyboard.press("ArrowRight")
    assert bad == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [report.as_uri()]
    page.close()


def brightest(shown: sync_api.Locator) -> int:
    """Return how bright (0 to 255) the brightest two in a hundred pixels of an element are."""
    picture = Image.open(BytesIO(shown.screenshot())).convert("L")
    return int(np.percentile(np.asarray(picture), 98))


def told(page: Any, theme: str, *, any_rule: bool = False) -> list[str]:
    """Return what is severe on a page, or whatever breaks any rule, a line each.

    In the theme `dark`, only what its colours decide.
    """
    return [
        f"{theme}: {v['rule']} ({v['impact']}): {node}"
        for v in violations(page, OF_THEME if theme == "dark" else ())
        if any_rule or v["impact"] in SEVERE or v["rule"] == "heading-order"
        for node in v["nodes"]
    ]


def test_a_planted_fault_would_be_found(visit: Visit) -> None:
    page = visit.page
    page.add_init_script(path=AXE)
    page.goto("about:blank")
    page.set_content("<html lang=en><title>t</title><main><h1>a</h1><img src=''></main></html>")
    assert "image-alt" in {found["rule"] for found in violations(page)}
