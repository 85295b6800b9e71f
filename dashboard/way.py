"""A way through the pages: the question that follows, and the words of the page explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from core.assets import ROOT
from core.glossary import explained
from dashboard import markup
from dashboard.state import is_presenting

__all__ = ["ROLES", "WAY", "Role", "show_menu", "show_next", "show_roles"]


@dataclass(frozen=True)
class Step:
    """The page that answers what one asks next, and the words to know on this one."""

    page: str
    question: str
    terms: tuple[str, ...]


WAY: dict[str, Step] = {
    "overview": Step(
        "inversion",
        "Which words of a sentence of your own does the vector give away?",
        ("embedding", "encoder", "attacker", "guessing", "F1"),
    ),
    "inversion": Step(
        "names",
        "And names: can it be told whose name is in a vector?",
        ("inversion", "F1", "precision", "recall", "guessing", "stop word", "vocabulary"),
    ),
    "names": Step(
        "projection",
        "What do the vectors of many texts say together?",
        ("vector", "vocabulary", "interval", "lower bound"),
    ),
    "projection": Step(
        "representations",
        "Would another encoder give away less?",
        ("embedding", "encoder", "noise", "F1"),
    ),
    "representations": Step(
        "attributes",
        "Does a vector tell who wrote the text?",
        ("encoder", "usefulness", "F1", "auxiliary texts", "interval"),
    ),
    "attributes": Step(
        "membership",
        "Can it be told whose texts a model was trained on?",
        ("attribute", "guessing", "interval"),
    ),
    "membership": Step(
        "memorisation",
        "Does a model keep by heart what it was trained on?",
        ("membership", "AUC", "guessing", "interval"),
    ),
    "memorisation": Step(
        "deniability",
        "How much noise hides a word?",
        ("canary", "exposure", "differential privacy", "epsilon (ε)"),
    ),
    "deniability": Step(
        "tradeoff",
        "Which defence saves most, and what does it cost?",
        ("deniability", "eta (η)", "noise", "token", "promise"),
    ),
    "tradeoff": Step(
        "training",
        "Does training for privacy hold against those who come later?",
        ("defence", "usefulness", "promise", "F1", "lower bound", "interval"),
    ),
    "training": Step(
        "story",
        "How do you tell it to others?",
        ("defence", "differential privacy", "epsilon (ε)", "F1"),
    ),
    "story": Step("overview", "How was it again, from the start?", ()),
    "glossary": Step("overview", "What does a text embedding give away?", ()),
}
"""By page; whoever follows it sees every page once."""


@dataclass(frozen=True)
class Role:
    """Somebody who comes with a task, and the pages that serve it."""

    title: str
    task: str
    pages: tuple[tuple[str, str, str], ...]
    """Page, icon, and what it answers."""


ROLES = (
    Role(
        "I protect texts",
        "You run a search or a model, and want less to be read.",
        (
            ("inversion", "undo", "**Inversion**: what is read from your sentence"),
            ("deniability", "blur_on", "**Deniability**: what noise makes of it"),
            ("tradeoff", "balance", "**Trade-off**: what each defence saves and costs"),
            ("training", "model_training", "**Training**: whether training for privacy holds"),
        ),
    ),
    Role(
        "I decide",
        "You answer for personal data, and ask what is at stake.",
        (
            ("tradeoff", "balance", "**Trade-off**: what protects, and what it costs"),
            ("names", "badge", "**Names**: whose name can be read"),
            ("attributes", "person_search", "**Attributes**: who wrote it"),
            ("membership", "group_search", "**Membership**: whose texts a model has seen"),
            ("memorisation", "psychology", "**Memorisation**: whether it keeps a secret"),
            ("story", "auto_stories", "**Story**: present what was found, or take it along"),
        ),
    ),
    Role(
        "I do research",
        "You compare encoders and attacks, and repeat what was measured.",
        (
            ("representations", "compare_arrows", "**Representations**: which encoder leaks least"),
            ("projection", "scatter_plot", "**Map**: many texts where their vectors lie"),
            ("glossary", "menu_book", "**Glossary**: the words, and what they stand for"),
        ),
    ),
)


def show_menu(pages: Mapping[str, Sequence[StreamlitPage]], here: StreamlitPage) -> None:
    """Draw the menu of narrow screens: Streamlit's own puts into a list what is no item of one.

    Parameters
    ----------
    pages : mapping
        What stands above some pages, to those.
    here : StreamlitPage
        The page that is drawn; the menu of another is closed.
    """
    menu = st.container(key="menu").popover(
        "Pages", icon=":material/menu:", type="tertiary", key=f"menu-{here.url_path}"
    )
    with menu.container(gap="xsmall"):
        for heading, group in pages.items():
            if heading:
                st.caption(heading)
            for page in group:
                st.page_link(page)


def show_roles() -> None:
    """Draw who may be reading, and where each goes on; every page is there once."""
    for place, role in zip(st.columns(len(ROLES), gap="medium"), ROLES, strict=True):
        with place.container(border=True, height="stretch"):
            st.subheader(role.title, anchor=False)
            st.markdown(role.task)
            for name, icon, told in role.pages:
                st.page_link(_path(name), label=told, icon=f":material/{icon}:")


def show_next(page: str) -> None:
    """Draw the words of a page, explained on hover and focus, and the question that follows."""
    step = WAY.get(page)
    if step is None or is_presenting():
        return
    st.divider()
    if step.terms:
        terms = {term: explained(term) for term in step.terms}
        st.html(markup.label("Words on this page") + markup.explained_terms(terms))
    with st.container(horizontal=True, gap="small", key="way"):
        st.page_link(
            _path(step.page),
            label=f"Next: **{step.question}**",
            icon=":material/arrow_forward:",
            width="content",
        )
        if page != "glossary":
            st.page_link(
                _path("glossary"), label="All words", icon=":material/menu_book:", width="content"
            )


def _path(page: str) -> str:
    return str(ROOT / "pages" / f"{page}.py")
