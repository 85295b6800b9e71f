"""Journeys through stories in a real Chromium: pinned, put in order, presented, taken along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browsing import PATIENCE, TEXT, Visit, headline, sync_api
from pytest import mark
from test_report_stories import needs_reader, packed, read_pdf

from leakscope.core.browser import has_browser
from leakscope.core.story.deck import make_deck
from leakscope.core.story.shipped import shipped_stories

pytestmark = mark.browser
needs_printer = pytest.mark.skipif(not has_browser(), reason="nothing prints here")


def press(page: sync_api.Page, key: str) -> None:
    """Click what is there to be clicked, once it stands: a page may keep a hidden copy."""
    page.locator(f".st-key-{key} :is(button, a)").filter(visible=True).first.click()


def told(page: sync_api.Page, heading: str) -> None:
    sync_api.expect(headline(page)).to_contain_text(heading)


def pinned(page: sync_api.Page) -> None:
    """Wait until the server has heard of it."""
    sync_api.expect(page.get_by_text("Pinned to your story").first).to_be_visible()


def presented(page: sync_api.Page) -> sync_api.Page:
    """Open a story that ships as a presentation, once its page is drawn to the end."""
    page.get_by_text("A story states which attackers").filter(visible=True).first.wait_for()
    with page.context.expect_page(timeout=PATIENCE) as opened:
        press(page, "story-present-safe-to-store")
    opened.value.wait_for_load_state()
    return opened.value


COUNT = """addEventListener("click", (click) => {
  if (click.isTrusted) sessionStorage.clicks = 1 + Number(sessionStorage.clicks || 0);
}, true)"""


@needs_printer
@needs_reader
def test_from_a_sentence_of_ones_own_to_a_pdf_in_ten_clicks(
    visit: Visit,
    tmp_path: Path,
) -> None:
    visit.page.add_init_script(COUNT)
    page = visit.open("/").page
    press(page, "try-it")  # 1
    page.wait_for_url("**/inversion")
    line = page.get_by_role("textbox", name="Your sentence")
    line.fill(TEXT)
    sync_api.expect(page.locator("mark", has_text="minister").first).to_be_visible()
    # The button of the sample, a plain one, stands until the page is drawn to its end.
    menu = page.locator(".st-key-add-to-story-inversion").get_by_test_id("stMenuButton")
    sync_api.expect(menu.filter(visible=True).first).to_be_visible()
    press(page, "add-to-story-inversion")  # 2
    page.get_by_role("menuitem", name="With what I typed").click()  # 3
    pinned(page)
    page.get_by_role("link", name="Story").first.click()  # 4
    told(page, "Your story: 1 slide,")
    press(page, "story-use-safe-to-store")  # 5
    n = len(shipped_stories()["safe-to-store"].pins) + 1
    told(page, f"{n} slides")
    with page.expect_download() as download:
        press(page, "story-save-pdf")  # 6
    download.value.save_as(tmp_path / "report.pdf")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-") and len(content) < 5_000_000
    assert 3 < page.evaluate("Number(sessionStorage.clicks)") <= 10
    slides = [packed(text) for text in read_pdf(content)]
    assert n >= 5 and packed(TEXT) in slides[1], "the cover, and then one's own"
    others = make_deck(shipped_stories()["safe-to-store"], "2026-03-01").pages
    for slide, other in zip(slides[2:], others, strict=False):
        assert slide.startswith(packed(other.heading))
    with page.expect_download() as download:
        press(page, "story-save-json")
    download.value.save_as(tmp_path / "story.json")
    found = json.loads((tmp_path / "story.json").read_text(encoding="utf-8"))
    own = found["pins"][0]
    assert "".join(piece for piece, _ in own["slide"]["sentence"]) == TEXT
    assert ["text", TEXT] in own["parameters"]


def test_what_was_typed_stays_out_where_nobody_asks_for_it(
    visit: Visit,
    tmp_path: Path,
) -> None:
    page = visit.open("/inversion", text=TEXT, attack=["probe_mlc", "mlc"]).page
    sync_api.expect(page.locator("mark", has_text="minister").first).to_be_visible()
    press(page, "add-to-story-inversion")
    page.get_by_role("menuitem", name="Numbers only").click()
    pinned(page)
    page.get_by_role("link", name="Story").first.click()
    told(page, "Your story: 1 slide,")
    with page.expect_download() as download:
        press(page, "story-save-json")
    download.value.save_as(tmp_path / "story.json")
    content = (tmp_path / "story.json").read_text(encoding="utf-8").lower()
    assert not [word for word in ("minister", "berlin", "police") if word in content]


def test_a_story_that_ships_is_presented_by_keys_in_any_window(visit: Visit) -> None:
    page = visit.open("/story").page
    told(page, "stories are ready")
    heard: list[tuple[sync_api.Page | None, str]] = []  # all windows', from their first breath on
    page.context.on("weberror", lambda fault: heard.append((fault.page, str(fault.error))))
    page.context.on("console", lambda message: heard.append((message.page, message.text)))
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    shown = presented(page)  # 1
    shown.evaluate("leakscope.ready")
    n = len(shipped_stories()["safe-to-store"].pins) + 1
    place = shown.locator("#place")
    sync_api.expect(place).to_have_text(f"1 of {n}")
    for key, at in (("ArrowRight", 2), ("PageDown", 3), ("PageUp", 2), ("End", n), ("Home", 1)):
        shown.keyboard.press(key)
        sync_api.expect(place).to_have_text(f"{at} of {n}")
        assert shown.evaluate("document.activeElement.matches('.slide.now h1, .slide.now h2')")
    shown.keyboard.press("f")  # 2, by a key or by the button
    shown.wait_for_function("() => document.fullscreenElement !== null")
    shown.keyboard.press("ArrowRight")
    with page.context.expect_page() as beside:
        shown.keyboard.press("n")
    notes = beside.value
    sync_api.expect(notes.get_by_role("heading")).to_have_text(
        shown.locator(".slide.now h2").inner_text()
    )
    notes.keyboard.press("PageDown")  # a clicker speaks to the window that is in front
    sync_api.expect(place).to_have_text(f"3 of {n}")
    sync_api.expect(notes.locator("#text")).not_to_have_text("No notes.")
    notes.close()
    shown.keyboard.press("PageUp")
    with page.context.expect_page() as live:
        shown.keyboard.press("o")
    assert "/inversion?text=Martin" in live.value.url, "the sentence of the slide"
    live.value.close()
    shown.keyboard.press("Escape")
    shown.wait_for_function("() => !document.body.classList.contains('presenting')")
    fills_the_screen(shown)
    is_read_in_a_small_window(shown, n)
    assert [text for window, text in heard if window == shown] == []
    own = (visit.address, f"ws{visit.address.removeprefix('http')}", "blob:", "data:", "about:")
    assert [url for url in asked if not url.startswith(own)] == []
    shown.close()


def fills_the_screen(shown: sync_api.Page) -> None:
    """The button fills the screen with a presentation, and leaves it so that the talk goes on."""
    fill = shown.get_by_role("button", name="Full screen")
    shown.keyboard.press("p")
    fill.click()
    shown.wait_for_function("() => document.fullscreenElement !== null")
    sync_api.expect(fill).to_have_attribute("aria-pressed", "true")
    is_presenting = "() => document.body.classList.contains('presenting')"
    for leave in (fill.click, lambda: shown.keyboard.press("f")):  # the talk goes on
        leave()
        shown.wait_for_function("() => document.fullscreenElement === null")
        sync_api.expect(fill).to_have_attribute("aria-pressed", "false")
        assert shown.evaluate(is_presenting)
        shown.keyboard.press("f")
        shown.wait_for_function("() => document.fullscreenElement !== null")
    shown.evaluate("document.exitFullscreen()")  # as Escape does, which no page hears of
    shown.wait_for_function(f"() => !({is_presenting})()")
    shown.keyboard.press("p")
    shown.set_viewport_size({"width": 320, "height": 700})
    bar = "document.querySelector('.bar')"
    assert shown.evaluate(f"{bar}.scrollWidth <= {bar}.clientWidth")
    sync_api.expect(fill).to_be_visible()


def is_read_in_a_small_window(shown: sync_api.Page, n: int) -> None:
    """What is longer than a window at twice the size, 640 by 400 points, is read to its end."""
    shown.set_viewport_size({"width": 640, "height": 400})
    place = shown.locator("#place")
    shown.keyboard.press("End")
    sync_api.expect(place).to_have_text(f"{n} of {n}")
    shown.keyboard.press("ArrowLeft")
    sync_api.expect(place).to_have_text(f"{n - 1} of {n}")
    last = shown.locator(".slide.now > *").last
    for _ in range(12):
        seen = last.evaluate(
            "part => part.getBoundingClientRect().bottom"
            " <= document.querySelector('.bar').getBoundingClientRect().top + 5"
        )
        if seen:
            break
        shown.keyboard.press("PageDown")
        shown.wait_for_timeout(200)
        sync_api.expect(place).to_have_text(f"{n - 1} of {n}")
    assert seen and shown.evaluate("scrollY") > 0
    shown.keyboard.press("PageDown")
    sync_api.expect(place).to_have_text(f"{n} of {n}")
    shown.set_viewport_size({"width": 320, "height": 400})
    shown.locator(".slide.now .wide").focus()
    shown.keyboard.press("ArrowLeft")  # moves the table, not the slide
    sync_api.expect(place).to_have_text(f"{n} of {n}")


def test_the_whole_of_a_story_is_told_without_a_pointer(visit: Visit) -> None:
    """From the page of stories, tab by tab, to the end of one and back."""
    page = visit.open("/story").page
    page.get_by_text("A story states which attackers").filter(visible=True).first.wait_for()
    link = page.locator(".st-key-story-present-safe-to-store :is(button, a)").filter(visible=True)
    for _ in range(100):
        page.keyboard.press("Tab")
        if link.first.evaluate("link => link === document.activeElement"):
            break
    with page.context.expect_page(timeout=PATIENCE) as opened:
        page.keyboard.press("Enter")
    shown = opened.value
    shown.wait_for_load_state()
    headings = shown.locator(".slide :is(h1, h2)").all_inner_texts()
    assert len(headings) == len(shipped_stories()["safe-to-store"].pins) + 1
    for i, heading in enumerate(headings, 1):
        sync_api.expect(shown.locator("#place")).to_have_text(f"{i} of {len(headings)}")
        now = shown.locator(".slide.now :is(h1, h2)")
        sync_api.expect(now).to_have_text(heading)
        sync_api.expect(now).to_be_focused()
        shown.keyboard.press("ArrowRight")
    shown.keyboard.press("Tab")  # what can be used is reached from the slide on
    assert shown.evaluate("document.activeElement !== document.body")
    shown.keyboard.press("Escape")
    sync_api.expect(shown.locator(".appendix")).to_be_visible()
    assert "#present" not in shown.url, "or it would be presented again where it is loaded anew"
    shown.get_by_role("link", name="To the stories in Leakscope").click()
    sync_api.expect(shown.get_by_role("heading", name="stories are ready")).to_be_visible()
    shown.close()


def test_a_story_of_a_colleague_opens_and_a_hostile_one_is_refused(
    visit: Visit,
    tmp_path: Path,
) -> None:
    page = visit.open("/story").page
    told(page, "stories are ready")
    mine = tmp_path / "story.json"
    found = shipped_stories()["which-eta"].to_dict()
    found["title"] = "<img src=x onerror=alert(1)> **ours**"
    mine.write_text(json.dumps(found), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(mine)
    told(page, f"{len(found['pins'])} slides")
    sync_api.expect(page.get_by_role("textbox", name="Title")).to_have_value(found["title"])
    found["pins"] = [{"page": "../../etc/passwd", "shows": "news"}]
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(found), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(hostile)
    sync_api.expect(page.get_by_role("alert").filter(visible=True).first).to_contain_text(
        "the name of a page"
    )
    told(page, "slides")  # the former story stands


def test_slides_are_dragged_into_order_and_their_headings_edited_in_place(visit: Visit) -> None:
    page = visit.open("/story").page
    told(page, "stories are ready")
    press(page, "story-use-which-eta")
    headings = page.get_by_role("textbox", name="Heading of slide")
    n = len(shipped_stories()["which-eta"].pins)
    sync_api.expect(headings).to_have_count(n)
    first, second, third = (headings.nth(i).input_value() for i in range(3))
    shown = page.locator(".st-key-story-slide").get_by_role("heading").first
    handle = page.get_by_role("button", name="Move slide 1 of")
    start, end = handle.bounding_box(), headings.nth(2).bounding_box()
    assert start and end
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(start["x"] + 5, end["y"] + end["height"] - 2, steps=8)
    page.mouse.up()
    sync_api.expect(headings.nth(2)).to_have_value(first)
    sync_api.expect(headings.nth(0)).to_have_value(second)
    sync_api.expect(shown).to_contain_text("3. ")
    page.get_by_role("button", name="Move slide 3 of").press("ArrowUp")
    sync_api.expect(headings.nth(1)).to_have_value(first)
    sync_api.expect(headings.nth(2)).to_have_value(third)
    # The handle keeps the focus, so that the next key moves the same slide.
    page.keyboard.press("ArrowUp")
    sync_api.expect(headings.nth(0)).to_have_value(first)
    evil = "<img src=x onerror=alert(1)> **ours**"
    headings.nth(1).fill(evil)
    headings.nth(1).press("Enter")
    sync_api.expect(shown).to_have_text(f"2. {evil}")
    sync_api.expect(headings.nth(1)).to_have_value(evil)
    headings.nth(2).fill("Said, and at once another slide chosen")
    headings.nth(0).click()
    sync_api.expect(shown).to_contain_text("1. ")
    sync_api.expect(headings.nth(2)).to_have_value("Said, and at once another slide chosen")
    headings.nth(1).fill("")
    headings.nth(1).press("Enter")
    sync_api.expect(headings.nth(1)).to_have_value(second)
    sync_api.expect(shown).to_contain_text("2. ")


def test_the_page_fits_every_width_and_theme(fitting: Visit) -> None:
    page = fitting.open("/story").page
    told(page, "stories are ready")
    press(page, "story-use-how-measured")
    told(page, "Your story")
    page.get_by_role("textbox", name="Heading of slide 2").click()
    page.locator("[data-testid=stDataFrame], .js-plotly-plot").first.wait_for()
