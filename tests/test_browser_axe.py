"""Every page is held against the rules of axe-core, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_browser import Visit, browser, patience, server, sync_api  # noqa: F401

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[1]
AXE = ROOT / "tests" / "vendor" / "axe-core" / "axe.min.js"
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
SEVERE = ("serious", "critical")
"""What keeps somebody from reading or using a page; the order of headings is looked at besides."""

RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ['violations']});
  return found.violations.map(v => ({rule: v.id, impact: v.impact, help: v.help,
    nodes: v.nodes.map(n => n.target.join(' ') + ' | ' + n.html.slice(0, 140)
                            + ' | ' + (n.any[0] || n.all[0] || n.none[0] || {}).message)}));
}"""


def violations(page: Any) -> list[dict[str, Any]]:
    """Return what axe-core finds on a page."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(RUN)
    return found


IS_DARK = """() => getComputedStyle(document.querySelector('.stApp')).backgroundColor
  .match(/\\d+/g).slice(0, 3).every(part => part < 100)"""


@pytest.mark.parametrize("name", PAGES)
def test_no_page_breaks_a_rule(
    browser: sync_api.Browser,  # noqa: F811
    server: tuple[str, Path],  # noqa: F811
    name: str,
) -> None:
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="light", bypass_csp=True
    )
    visit = Visit(context.new_page(), server[0]).open(f"/{name}" if name != "overview" else "/")
    sync_api.expect(visit.page.get_by_role("heading", level=1).first).to_be_visible()
    visit.page.get_by_text("Next:").first.wait_for()  # the last thing on a page
    assert not visit.page.evaluate(IS_DARK)
    bad = told(visit.page, "light")
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function(IS_DARK)
    bad += told(visit.page, "dark")
    context.close()
    assert bad == []


def told(page: Any, theme: str) -> list[str]:
    """Return what is severe on a page, a line each."""
    return [f"{theme}: {v['rule']} ({v['impact']}): {node}" for v in violations(page)
            if v["impact"] in SEVERE or v["rule"] == "heading-order"
            for node in v["nodes"]]  # fmt: skip


def test_a_planted_fault_would_be_found(browser: sync_api.Browser) -> None:  # noqa: F811
    page = browser.new_page()
    page.set_content("<html lang=en><title>t</title><main><h1>a</h1><img src=''></main></html>")
    assert "image-alt" in {found["rule"] for found in violations(page)}
    page.close()
