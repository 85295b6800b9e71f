"""A page, added by one file and one entry, is in the menu, opens, and goes into a story."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leakscope.core import assets
from leakscope.core.assets import ROOT
from leakscope.core.pages import PAGES, Page
from leakscope.core.story.format import Pin, Story
from leakscope.core.story.reading import story_from_data

TOY = Page(
    "Toy",
    "toys",
    "A page of the tests.",
    question="What leaks from a text?",
    terms=("encoder",),
    caveat="A toy proves nothing.",
)
SCRIPT = """
import streamlit as st

from leakscope.core.findings.finding import Finding, facts_of_none
from leakscope.dashboard.address import Address
from leakscope.dashboard.story.pinning import PinnedView, pin_button
from leakscope.dashboard.ui.finding import show_finding
from leakscope.dashboard.ui.toolbar import toolbar

found = Finding(title="A toy answer", body="Nothing leaks.", facts=facts_of_none("none: a toy"))
show_finding(st.container(), found, "toy")
toolbar(Address("toy", ()).show_link)
pin_button("toy", [], lambda _: PinnedView(finding=found))
"""


@pytest.fixture
def page(small_app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The dashboard in a folder that holds one page more."""
    (tmp_path / "pages").mkdir()
    for path in [ROOT / "dashboard", ROOT / "assets", *(ROOT / "pages").glob("*.py")]:
        (tmp_path / path.relative_to(ROOT)).symlink_to(path)
    (tmp_path / "pages" / "toy.py").write_text(SCRIPT)
    monkeypatch.setattr(assets, "ROOT", tmp_path)
    monkeypatch.setitem(PAGES, "toy", TOY)  # type: ignore[arg-type]
    small_app.run()
    small_app.switch_page(str(tmp_path / "pages" / "toy.py")).run()
    assert not small_app.exception and not small_app.error
    return small_app


def test_it_opens_with_what_its_entry_says(page: AppTest) -> None:
    assert [title.value for title in page.title] == ["A toy answer"]
    links = [link.proto for link in page.get("page_link")]
    assert any(TOY.question in link.label for link in links), "the question that follows"
    assert any(link.label == "Toy" and link.icon == ":material/toys:" for link in links), "the menu"
    assert any("encoder" in part.value for part in page.html), "the words on it"


def test_its_finding_goes_into_a_story(page: AppTest) -> None:
    page.button(key="add-to-story-toy").click().run()
    (placed,) = page.session_state["_story_pins"]
    pin: Pin = placed.pin
    assert pin.page == "toy" and pin.slide is not None
    assert pin.slide.title == "A toy answer" and pin.slide.caveat == TOY.caveat
    assert story_from_data(Story(title="Of toys", pins=(pin,)).to_dict()).lacks == ()
