"""Terms of the glossary in running text: explained where a page uses them first, and only there."""

from __future__ import annotations

import re

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from leakscope.core.glossary import GLOSSARY, explain
from leakscope.dashboard.ui import terms
from leakscope.dashboard.ui.terms import new_term_help, reset_explained_terms, terms_in

TOLD = re.compile(r"^\*\*(.*?)\*\*: ", re.MULTILINE)


@pytest.mark.parametrize("term", GLOSSARY)
def test_every_term_is_found_by_its_word_its_plural_and_its_sign(term: str) -> None:
    word, _, sign = term.partition(" (")
    assert terms_in(f"So many {word}s here") == terms_in(f"The {word}.") == [term]
    if sign:
        assert terms_in(f"at {sign.rstrip(')')} 3") == [term]
    assert terms_in(f"x{word}x") == []


def test_short_terms_are_spelt_as_they_are() -> None:
    assert terms_in("Defences leak; an ENCODER too") == ["defence", "encoder"]
    assert terms_in("f1 and auc are no words") == []


def test_a_term_is_explained_once_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "session_state", {})
    monkeypatch.setattr(terms, "is_presenting", lambda: False)
    reset_explained_terms()
    first = new_term_help("The **attacker** reads an F1 of 3.")
    assert first == f"**attacker**: {explain('attacker')}\n\n**F1**: {explain('F1')}"
    assert (
        new_term_help("An attacker again") is None and new_term_help("None of these words") is None
    )
    assert new_term_help("Another F1, without the vector") == f"**vector**: {explain('vector')}"
    reset_explained_terms()
    assert new_term_help("An attacker again")
    monkeypatch.setattr(terms, "is_presenting", lambda: True)
    reset_explained_terms()
    assert new_term_help("The attacker") is None


def explained_on(page: AppTest) -> list[tuple[str, str]]:
    """Return the texts of a page that explain words, each with what it says of them."""
    parts = [*page.markdown, *page.caption]
    return [(part.value, part.proto.help) for part in parts if "**: " in part.proto.help]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inversion", "tradeoff", "memorisation"])
def test_the_finding_of_a_page_explains_its_words(small_app: AppTest, name: str) -> None:
    small_app.run()
    page = small_app.switch_page(f"../pages/{name}.py").run()
    assert not page.exception
    drawn = explained_on(page)
    told = [term for _, said in drawn for term in TOLD.findall(said)]
    assert told and len(told) == len(set(told)), "each once"
    for text, said in drawn:
        for term in TOLD.findall(said):
            assert term in terms_in(text) and explain(term) in said
    assert explained_on(page.run()) == drawn, "drawn anew, they are explained anew"
