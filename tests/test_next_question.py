"""A way through: roles, the next question, one glossary."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from leakscope.core.pages import PAGES
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.next_question import ROLES

FILES = {path.stem for path in (Path(__file__).parents[1] / "pages").glob("*.py")}


def test_whoever_follows_the_questions_sees_every_page() -> None:
    assert set(PAGES) == FILES
    seen, here = set(), "overview"
    while here not in seen:
        seen.add(here)
        here = PAGES[here].following
    assert seen == FILES - {"glossary"} and here == "overview"


def test_every_page_is_of_a_role_and_named_once_in_it() -> None:
    listed = [[name for name, _ in role.pages] for role in ROLES]
    assert {name for names in listed for name in names} == FILES - {"overview"}
    assert all(len(set(names)) == len(names) for names in listed)


def test_a_term_is_told_to_screen_readers_and_no_markup_of_it_is_taken() -> None:
    html = markup.explained_terms({"<b>x": 'says "no" & more'})
    assert "<b>" not in html and 'aria-label="&lt;b&gt;x: says &quot;no&quot; &amp; more"' in html
    assert 'tabindex="0"' in html


@pytest.mark.parametrize("name", ["overview", "tradeoff", "glossary"])
def test_a_page_names_the_next_question(small_app: AppTest, name: str) -> None:
    small_app.run()
    page = small_app.switch_page(f"../pages/{name}.py").run()
    assert not page.exception and not page.error
    links = [link.proto for link in page.get("page_link")]
    said = [link for link in links if PAGES[name].question in link.label]
    assert len(said) == 1 and PAGES[name].following in (said[0].page or "overview")
