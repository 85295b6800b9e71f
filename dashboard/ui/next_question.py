"""Navigation between pages: the menu, the roles of readers, and the link to the next question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from leakscope.core.assets import ROOT
from leakscope.core.glossary import explain
from leakscope.core.pages import PAGES
from leakscope.dashboard.ui import markup
from leakscope.dashboard.ui.state import is_presenting


@dataclass(frozen=True)
class Role:
    """A kind of reader with a task, and the pages for it."""

    title: str
    task: str
    pages: tuple[tuple[str, str], ...]
    """Pairs of a page and the question that it answers."""


ROLES = (
    Role(
        "I protect texts",
        "You want a search or a model to leak less.",
        (
            ("inversion", "**Inversion**: which words leak from your sentence"),
            ("audit", "**Audit**: what leaks from your own vectors"),
            ("deniability", "**Deniability**: how noise changes a sentence"),
            ("tradeoff", "**Trade-off**: what each defence protects and costs"),
            ("training", "**Training**: whether training for privacy withstands attackers"),
        ),
    ),
    Role(
        "I decide",
        "You answer for personal data.",
        (
            ("audit", "**Audit**: what leaks from your own vectors"),
            ("tradeoff", "**Trade-off**: which defence protects best, and its cost"),
            ("names", "**Names**: whether an attacker recovers names"),
            ("attributes", "**Attributes**: whether a vector reveals who wrote the text"),
            ("membership", "**Membership**: which texts a model was trained on"),
            ("memorisation", "**Memorisation**: whether a model memorises a secret"),
            ("story", "**Story**: present the results, or download a report"),
        ),
    ),
    Role(
        "I do research",
        "You compare encoders and attacks.",
        (
            ("representations", "**Representations**: which encoder leaks least at equal utility"),
            ("projection", "**Map**: many texts, placed by their vectors"),
            ("glossary", "**Glossary**: what the terms mean"),
        ),
    ),
)


def show_menu(pages: Mapping[str, Sequence[StreamlitPage]], here: StreamlitPage) -> None:
    """Draw the page menu for narrow screens, which replaces Streamlit's inaccessible one.

    Parameters
    ----------
    pages : mapping
        Headings, and the pages below each.
    here : StreamlitPage
        The current page; a new page starts with a closed menu.
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
    """Draw a card for each role with links to its pages; every page is linked."""
    for place, role in zip(st.columns(len(ROLES), gap="medium"), ROLES, strict=True):
        with place.container(border=True, height="stretch"):
            st.subheader(role.title, anchor=False)
            st.markdown(role.task)
            for name, answers in role.pages:
                st.page_link(
                    _script_path(name), label=answers, icon=f":material/{PAGES[name].icon}:"
                )


def show_next(page: str) -> None:
    """Draw a page's terms, explained on hover and focus, and the link to the following page."""
    here = PAGES.get(page)
    if here is None or is_presenting():
        return
    st.divider()
    if here.terms:
        terms = {term: explain(term) for term in here.terms}
        st.html(markup.label("Terms on this page") + markup.explained_terms(terms))
    with st.container(horizontal=True, gap="small", key="way"):
        st.page_link(
            _script_path(here.following),
            label=f"Next: **{here.question}**",
            icon=":material/arrow_forward:",
            width="content",
        )
        if page != "glossary":
            st.page_link(
                _script_path("glossary"),
                label="All terms",
                icon=":material/menu_book:",
                width="content",
            )


def _script_path(page: str) -> str:
    """Return the file path of a named page's script."""
    return str(ROOT / "pages" / f"{page}.py")
