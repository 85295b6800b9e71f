"""A way through: roles, the next question, one glossary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.glossary import GLOSSARY, explained
from dashboard import markup
from dashboard.way import ROLES, WAY

PAGES = {path.stem for path in (Path(__file__).parents[1] / "pages").glob("*.py")}


def test_whoever_follows_the_questions_sees_every_page() -> None:
    assert set(WAY) == PAGES
    seen, here = set(), "overview"
    while here not in seen:
        seen.add(here)
        here = WAY[here].page
    assert seen == PAGES - {"glossary"} and here == "overview"


def test_every_page_is_of_a_role_and_named_once_in_it() -> None:
    listed = [[name for name, _, _ in role.pages] for role in ROLES]
    assert {name for names in listed for name in names} == PAGES - {"overview"}
    assert all(len(set(names)) == len(names) for names in listed)


def test_terms_are_in_order_and_every_one_of_a_page_is_explained() -> None:
    assert list(GLOSSARY) == sorted(GLOSSARY, key=str.lower)
    for step in WAY.values():
        assert all(explained(term) for term in step.terms)
    assert all(text.endswith(".") for text in GLOSSARY.values())


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
    said = [link for link in links if WAY[name].question in link.label]
    assert len(said) == 1 and WAY[name].page in (said[0].page or "overview")


def test_the_glossary_explains_every_term_once(small_app: AppTest) -> None:
    small_app.run()
    page = small_app.switch_page("../pages/glossary.py").run()
    html = next(part.value for part in page.html if "ls-glossary" in part.value)
    terms = re.findall(r"<dt>(.*?)</dt>", html)
    assert terms == list(GLOSSARY)
