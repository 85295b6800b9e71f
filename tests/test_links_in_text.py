"""Typed text that looks like a link, an emoji or an arrow stays text where a page repeats it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from leakscope.dashboard.ui.errors import plain
from leakscope.dashboard.ui.state import TEXT_KEY

# What Streamlit's browser side makes of text after it has undone the escapes.
MADE = {
    "link": re.compile(r"(https?://|www(?=\.))([-.\w]+)", re.IGNORECASE | re.ASCII),
    "mail": re.compile(r"[-.\w+]+@[-\w]+(\.[-\w]+)+"),
    "emoji or icon": re.compile(r":[\w+-]+:"),
    "arrow": re.compile(r"(^|\s)(<->|->|<-|--|>=|<=|~=)(\s|$)"),
}
BAIT = [
    "www.evil.test/login",
    "see HTTPS://evil.test/?a=b, now",
    "wwwhttp://www.www.evil.test",
    "mail to clerk+1@evil.test.",
    ":material_home: :streamlit: :+1: :a:b:",
    "-> <- <-> -- >= <= ~=",
]
PAGES = [
    "overview",
    "audit",
    "inversion",
    "names",
    "attributes",
    "membership",
    "memorisation",
    "deniability",
    "tradeoff",
    "training",
    "projection",
]
MARKED_UP = [
    "markdown",
    "caption",
    "title",
    "header",
    "subheader",
    "error",
    "warning",
    "info",
    "success",
]


def made_of(markdown: str) -> list[str]:
    """Return what the browser would make of the text nodes of a Markdown source."""
    seen = re.sub(r"`[^`]*`", "", re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown))
    return [kind for kind, pattern in MADE.items() if pattern.search(seen)]


@pytest.mark.parametrize("text", BAIT)
def test_the_bait_would_be_taken_if_it_were_only_escaped(text: str) -> None:
    escaped = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)
    assert made_of(escaped) and not made_of(plain(text))


@given(st.text(st.sampled_from("wWhtps:/.@a1-+_<>=~ \n:w"), max_size=30))
def test_nothing_is_made_of_any_text(text: str) -> None:
    assert made_of(plain(text)) == []


@given(st.text(max_size=40))
def test_the_text_is_still_read_as_it_was_typed(text: str) -> None:
    shown = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", plain(text)).replace("\u2060", "")
    assert shown == " ".join(text.split()).replace("\u2060", "")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_no_page_repeats_what_was_typed_as_a_link(small_app: AppTest, page: str) -> None:
    small_app.run()
    for name in ("text", "attack", "encoder", "names", "eta", "task", "corpus", "colour", "n"):
        small_app.query_params[name] = f"www.evil.test/{name} http://evil.test a@evil.test"
    small_app.switch_page(f"../pages/{page}.py").run()
    assert not small_app.exception
    told = [e.value for kind in MARKED_UP for e in getattr(small_app, kind)]
    assert any("evil" in value for value in told) or page == "overview"
    for value in told:
        if "evil" in value:
            assert not {"link", "mail"} & set(made_of(value)), value


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["inversion", "deniability", "tradeoff", "representations", "projection"]
)
def test_a_sentence_that_cannot_be_read_is_told(small_app: AppTest, page: str) -> None:
    small_app.run()
    small_app.switch_page(f"../pages/{page}.py").run()
    for text, wrong in (
        ("", "empty"),
        ("null\0byte", "null byte"),
        ("word " * 20_000, "characters"),
    ):
        small_app.text_input(key=TEXT_KEY).set_value(text).run()
        assert not small_app.exception
        assert wrong in " ".join(error.value for error in small_app.error)
