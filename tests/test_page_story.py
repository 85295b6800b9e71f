"""The page of stories, and the button that pins a view to it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from served import send_through
from streamlit.testing.v1 import AppTest
from visiting import open_page

from leakscope.core.findings.finding import Finding
from leakscope.core.findings.registry import VIEWS
from leakscope.core.story.deck import make_deck
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.html import html_report
from leakscope.core.story.reading import story_from_data
from leakscope.core.story.shipped import shipped_stories
from leakscope.dashboard.server.visitor import COOKIE
from leakscope.dashboard.story import serving, state
from leakscope.dashboard.ui.errors import plain


def pins(app: AppTest) -> list[Pin]:
    found: list[state.NumberedPin] = app.session_state["_story_pins"]
    return [each.pin for each in found]


def test_the_page_offers_the_stories_that_ship(small_app: AppTest) -> None:
    page = open_page(small_app, "story")
    assert "3 stories" in page.title[0].value
    assert [s.value for s in page.subheader] == [s.title for s in shipped_stories().values()]
    addresses = [link.proto.url for link in page.get("link_button")]
    assert len(addresses) == len(set(addresses)) == 3
    assert all(re.fullmatch(r"/story-shown/[\w-]{32}#present", each) for each in addresses)


@pytest.mark.slow
def test_slides_are_taken_over_put_in_order_and_annotated(small_app: AppTest) -> None:
    page = open_page(small_app, "story")
    page.button(key="story-use-safe-to-store").click().run()
    n = len(shipped_stories()["safe-to-store"].pins)
    assert f"{n} slides" in page.title[0].value
    first, second = pins(page)[:2]
    page.session_state["_story_shown"] = 1
    page.run()
    assert page.text_area(key="story-notes-1").value == second.notes
    page.button(key="story-remove-1").click().run()
    assert len(pins(page)) == n - 1 and pins(page)[0] == first
    assert page.button(key="story-remove-2"), "the slide that took its place is shown"
    page.session_state["_story_shown"] = 0
    page.session_state["_story_pins"] = [
        state.NumberedPin(each.number, replace(each.pin, heading="Mine *now*"))
        for each in page.session_state["_story_pins"]
    ]
    page.run()
    page.text_area(key="story-notes-0").set_value("Breathe").run()
    assert (pins(page)[0].heading, pins(page)[0].notes) == ("Mine *now*", "Breathe")
    assert any(s.value == r"1. Mine \*now\*" for s in page.subheader)
    page.button(key="story-anew").click().run()
    assert pins(page) == []
    assert not page.exception


@pytest.mark.slow
@pytest.mark.parametrize("name", ["safe-to-store", "which-eta"])
def test_what_follows_stays_last_when_a_slide_of_ones_own_is_added(
    small_app: AppTest, name: str
) -> None:
    page = open_page(small_app, "story")
    page.button(key=f"story-use-{name}").click().run()
    *others, last = pins(page)
    assert VIEWS[last.shows].closes
    with_own = open_page(page, "tradeoff", task="MR", keep="80")
    with_own.button(key="add-to-story-tradeoff").click().run()
    found = pins(with_own)
    assert found[:-2] == others and found[-1] == last and found[-2].slide is not None


def test_a_view_is_pinned_as_the_page_shows_it_and_as_its_controls_stand(
    small_app: AppTest,
) -> None:
    page = open_page(small_app, "tradeoff", task="MR", keep="80")
    page.button(key="add-to-story-tradeoff").click().run()
    (pin,) = pins(page)
    assert pin.slide is not None and pin.slide.figure is not None
    assert ("task", "MR") in pin.parameters
    assert ("keep", "80") in pin.parameters
    assert "text" not in dict(pin.parameters)
    shown = json.loads(page.get("plotly_chart")[0].proto.spec)
    for mine, theirs in zip(pin.slide.figure["data"], shown["data"], strict=True):
        assert mine["x"] == theirs["x"]
        assert mine["y"] == theirs["y"]
    assert page.title[0].value.replace("\\", "") == pin.slide.title
    assert {"n", "Interval", "Attacker", "Access"} <= dict(pin.slide.facts).keys()
    assert story_from_data(
        json.loads(json.dumps(Story(title="t", pins=(pin,)).to_dict()))
    ).pins == (pin,)
    # A control that is moved just before the click counts, though the page is not drawn again.
    page.slider(key="share_to_keep").set_value(60)
    page.button(key="add-to-story-tradeoff").click().run()
    moved = pins(page)[-1]
    assert ("keep", "60") in moved.parameters
    assert moved.slide is not None
    assert page.title[0].value.replace("\\", "") == moved.slide.title
    assert any(plain(moved.slide.title) in toast.value for toast in page.toast)
    page.run()
    assert len(pins(page)) == 2


def test_what_was_asked_of_a_page_that_was_left_is_pinned_nowhere(small_app: AppTest) -> None:
    page = open_page(small_app, "training")
    page.session_state["_story_requested"] = ("tradeoff", False)
    open_page(page, "overview")
    open_page(page, "tradeoff")
    assert "_story_pins" not in page.session_state or pins(page) == []


def asked(path: str, cookie: str = "", method: str = "GET") -> tuple[int, dict[str, str], str]:
    """Ask the middleware, behind which there is nothing."""

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        await send({"status": 418, "headers": []})

    headers = [(b"cookie", f"{COOKIE}={cookie}".encode())] if cookie else []
    start, *rest = send_through(
        serving.ServePresentations, nothing, path=path, method=method, headers=headers
    )
    named = {k.decode(): v.decode() for k, v in start["headers"]}
    body = b"".join(message.get("body", b"") for message in rest).decode()
    return start["status"], named, body


def test_a_presentation_is_served_to_whoever_made_it_alone() -> None:
    mine, other = "a" * 22, "b" * 22

    def make(at: str) -> tuple[str, str]:
        return html_report(make_deck(Story(title="Mine"), "2026-03-01"), base=at), "default-src x"

    shown = serving._Presentation("token", mine, make)
    serving._PRESENTATIONS["token"] = shown
    status, headers, body = asked("/story-shown/token", mine)
    assert status == 200
    assert "Mine" in body
    assert headers["content-security-policy"].startswith("default-src x; frame-ancestors 'none'")
    assert headers["cache-control"] == "no-store"
    assert asked("/story-shown/token", other)[0] == 404
    assert asked("/story-shown/token")[0] == 404
    assert asked("/story-shown/other", mine)[0] == 404
    assert asked("/story-shown/token", mine, "POST")[0] == 404
    assert asked("/inversion", mine)[0] == 418
    del shown  # the session ends
    assert asked("/story-shown/token", mine)[0] == 404


def test_a_hostile_pin_is_drawn_as_plain_text(small_app: AppTest) -> None:
    evil = "![x](http://a.example/x.png) <script>alert(1)</script> **b** :material/home:"
    slide = Finding(
        title=evil, body=evil, caveat=evil, facts=((evil, evil),), sentence=((evil, "recovered"),)
    )
    page = open_page(small_app, "story")
    page.session_state["_story_pins"] = [
        state.NumberedPin(0, Pin(page="inversion", slide=slide, remark=evil))
    ]
    page.run()
    assert not page.exception
    drawn = [part.value for part in (*page.markdown, *page.subheader)]
    assert not any("](http" in each or "<script" in each.replace("\\<", "") for each in drawn)
    html = " ".join(part.value for part in page.html if "ls-" in part.value)
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
