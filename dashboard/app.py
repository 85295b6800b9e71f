"""The frame around every page: navigation, logo, style, and the handling of errors."""

from __future__ import annotations

import pandas  # noqa: F401 - whole before any page: Plotly takes what another thread imports by halves
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from core.assets import ASSETS, ROOT
from dashboard import downloads, state, terms, way
from dashboard.calm import calm
from dashboard.controls import leave_button
from dashboard.guard import DEFAULT_PAGE


def _page(name: str, title: str, icon: str, tip: str) -> StreamlitPage:
    """Return a page, which its file names."""
    return st.Page(
        ROOT / "pages" / f"{name}.py",
        title=title,
        icon=f":material/{icon}:",
        url_path=name,
        default=name == DEFAULT_PAGE,
        help=tip,
    )


# By the question that they answer; a page without one stands beside the questions. (A comment: what
# stands in this script as a bare string is drawn.)
PAGES = {
    "": [
        _page(
            "overview",
            "Overview",
            "visibility",
            "What a text embedding leaks, with one live example.",
        ),
        _page(
            "story",
            "Story",
            "auto_stories",
            "Views that you pinned, in an order: present them, or take them along as a report.",
        ),
        _page("glossary", "Glossary", "menu_book", "What the words of the pages mean."),
    ],
    "What is read": [
        _page(
            "inversion",
            "Inversion",
            "undo",
            "Type a sentence and see which of its words an attacker reads from the vector alone.",
        ),
        _page(
            "names",
            "Names",
            "badge",
            "Put names into sentences and see which of them an attacker reads from the vectors.",
        ),
        _page(
            "projection",
            "Map",
            "scatter_plot",
            "Many texts as their vectors lie, and where a sentence or a defence puts them.",
        ),
        _page(
            "representations",
            "Representations",
            "compare_arrows",
            "Which way of turning text into vectors leaks least at equal usefulness.",
        ),
    ],
    "What is inferred": [
        _page(
            "attributes",
            "Attributes",
            "person_search",
            "Who wrote it, or any other label: what vectors tell after a few labelled texts.",
        ),
        _page(
            "membership",
            "Membership",
            "group_search",
            "Whose texts a model was trained on, and what such a verdict is worth.",
        ),
        _page(
            "memorisation",
            "Memorisation",
            "psychology",
            "Plant a secret among the texts that a model is trained on, and watch it being kept.",
        ),
    ],
    "What defends": [
        _page(
            "deniability",
            "Deniability",
            "blur_on",
            "Drag η and see what a sentence becomes, and how often each of its words comes back.",
        ),
        _page(
            "tradeoff",
            "Trade-off",
            "balance",
            "What each defence saves, and what it costs in usefulness.",
        ),
        _page(
            "training",
            "Training",
            "model_training",
            "Whether training for privacy holds against attackers who come after it.",
        ),
    ],
}
st.set_page_config(
    page_title="Leakscope",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state="collapsed",
)
st.html(ROOT / "dashboard" / "style.css")
page = st.navigation(PAGES, position="hidden" if state.is_presenting() else "top")
# It takes the colours of the theme by itself, also of one that is chosen while the page is open.
st.logo(str(ASSETS / "logo.svg"), size="large")

downloads.forget_place()
terms.forget_terms()
if state.is_presenting():
    st.html(ROOT / "dashboard" / "present.css")
    with st.container(key="leave"):
        leave_button()
else:
    way.show_menu(PAGES, page)
with calm():
    page.run()
    way.show_next(page.url_path or DEFAULT_PAGE)
