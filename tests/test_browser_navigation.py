"""The menu of pages on a telephone: opened, walked through by the keyboard, followed and closed."""

from __future__ import annotations

import pytest
from browsing import TELEPHONE, WINDOW, Visit, headline, sync_api

pytestmark = pytest.mark.browser
GROUPS = {
    "What leaks": ("Inversion", "Names", "Map", "Representations"),
    "What can be inferred": ("Attributes", "Membership", "Memorisation"),
    "Defences": ("Deniability", "Trade-off", "Training"),
}
PAGES = (
    "Overview",
    "Audit",
    "Story",
    "Glossary",
    *(name for names in GROUPS.values() for name in names),
)
_FOCUSED = """() => document.activeElement.matches('a, button')
  ? document.activeElement.innerText.split('\\n').map(line => line.trim()) : []"""


def on_a_telephone(visit: Visit, path: str = "/glossary") -> sync_api.Page:
    visit.page.set_viewport_size(TELEPHONE)
    page = visit.open(path).page
    sync_api.expect(headline(page)).to_be_visible()
    return page


def opener(page: sync_api.Page) -> sync_api.Locator:
    return page.locator(".st-key-menu").get_by_role("button", name="Pages")


def opened(page: sync_api.Page) -> sync_api.Locator:
    return page.get_by_test_id("stPopoverBody")


def focused(page: sync_api.Page) -> str:
    """Return the name of what has the focus, without the names of its icons."""
    lines: list[str] = page.evaluate(_FOCUSED)
    return next((line for line in lines if line in (*PAGES, "Pages")), "")


def tab_to(page: sync_api.Page, wanted: str, most: int = 40) -> list[str]:
    """Press Tab until something of that name has the focus; return what had it on the way."""
    seen = []
    while (not seen or seen[-1] != wanted) and len(seen) < most:
        page.keyboard.press("Tab")
        seen.append(focused(page))
    assert seen[-1] == wanted, seen
    return seen


def test_the_keyboard_opens_the_menu_walks_through_it_and_goes_to_a_page(visit: Visit) -> None:
    page = on_a_telephone(visit)
    tab_to(page, "Pages")
    sync_api.expect(opened(page)).to_be_hidden()
    page.keyboard.press("Enter")
    menu = opened(page)
    sync_api.expect(menu.get_by_role("link", name="Training")).to_be_visible()
    for heading in GROUPS:
        sync_api.expect(menu.get_by_text(heading, exact=True)).to_be_visible()
    passed = tab_to(page, "Training")
    assert [name for name in passed if name in PAGES] == [*PAGES], "in the order that one sees"
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid", "who has the focus can be seen"
    while focused(page) != "Membership":
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/membership")
    sync_api.expect(opened(page)).to_be_hidden()
    sync_api.expect(opener(page)).to_be_visible()
    assert visit.overflow <= 0


def test_the_menu_opens_fits_the_screen_and_closes_by_escape_or_beside(visit: Visit) -> None:
    page = on_a_telephone(visit)
    before = page.url
    opener(page).focus()
    for key in ("Enter", "Space"):
        page.keyboard.press(key)
        sync_api.expect(opened(page)).to_be_visible()
        page.keyboard.press("Escape")
        sync_api.expect(opened(page)).to_be_hidden()
        assert focused(page) == "Pages", "the keyboard goes on where it was"
    assert page.url == before
    opener(page).click()
    menu = opened(page)
    sync_api.expect(menu).to_be_visible()
    for name in PAGES:
        link = menu.get_by_role("link", name=name, exact=True)
        link.scroll_into_view_if_needed()
        box = link.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= TELEPHONE["width"]
        assert box["height"] >= 24, "large enough for a finger (WCAG 2.5.8)"
    page.mouse.click(20, TELEPHONE["height"] - 40)
    sync_api.expect(menu).to_be_hidden()
    sync_api.expect(opener(page)).to_be_visible()
    page.set_viewport_size(WINDOW)
    sync_api.expect(opener(page)).to_be_hidden()
    sync_api.expect(page.get_by_test_id("stTopNavSection").first).to_be_visible()
