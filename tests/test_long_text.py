"""A long text has room, however it came, and every page says how much of it is encoded."""

from __future__ import annotations

import re
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest
from visiting import Open, open_page

from leakscope.dashboard import cache
from leakscope.dashboard.ui import state

SENTENCE = "The garden lies by the river. "
LONG = SENTENCE * 80


@pytest.fixture
def opened(small_app: AppTest) -> Open:
    return partial(open_page, small_app)


def area(page: AppTest) -> str | None:
    return page.text_area(key="text-area").value if page.text_area else None


@pytest.mark.parametrize(
    ("page", "address"),
    [("tradeoff", {}), ("projection", {}), ("representations", {"encoder": "minilm"})],
)
def test_every_page_with_a_sentence_says_how_much_of_it_is_encoded(
    opened: Open, page: str, address: dict[str, str]
) -> None:
    app = opened(page, text=LONG, **address)
    (said,) = [c.value for c in app.caption if "words are encoded" in c.value]
    n_read, n = (int(part) for part in re.findall(r"\d+", said)[:2])
    assert n == 480 and 100 < n_read < 254


@pytest.mark.slow
def test_a_text_that_is_set_or_pasted_gets_the_room_that_it_needs(opened: Open) -> None:
    page = opened("tradeoff", text=SENTENCE)
    assert area(page) is None
    page.text_input(key=state.TEXT_KEY).set_value(LONG).run()
    assert area(page) == LONG, "pasted"
    page.button(key=f"sample-{cache.samples()[0]['id']}").click().run()
    assert area(page) is None and page.text_input(key=state.TEXT_KEY).value != LONG
    page.button(key="long-text").click().run()
    assert area(page), "asked for"
    page.button(key=f"sample-{cache.samples()[1]['id']}").click().run()
    assert area(page) == cache.samples()[1]["text"], "who asked for it keeps it"


def test_who_types_goes_on_where_they_are(opened: Open) -> None:
    page = opened("tradeoff", text="a" * 190)
    page.text_input(key=state.TEXT_KEY).set_value("a" * 205).run()
    assert area(page) is None
    page.button(key="long-text").click().run()
    page.text_area(key="text-area").set_value("a garden").run()
    assert area(page) == "a garden"
