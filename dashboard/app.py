"""The Streamlit script around every page: navigation, logo, style and error handling."""

from __future__ import annotations

import pandas  # noqa: F401 - before any page: Plotly fails on a half-finished import in a thread
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from leakscope.core.assets import ASSETS, ROOT
from leakscope.core.pages import PAGES
from leakscope.dashboard.server.guard import DEFAULT_PAGE
from leakscope.dashboard.ui import downloads, next_question, state, terms
from leakscope.dashboard.ui.controls import leave_button
from leakscope.dashboard.ui.errors import error_boundary

# Pages by the question that they answer. (A comment: Streamlit draws bare strings of this script.)
MENU: dict[str, list[StreamlitPage]] = {}
for _name, _page in PAGES.items():
    MENU.setdefault(_page.group, []).append(
        st.Page(
            ROOT / "pages" / f"{_name}.py",
            title=_page.title,
            icon=f":material/{_page.icon}:",
            url_path=_name,
            default=_name == DEFAULT_PAGE,
            help=_page.tip,
        )
    )
st.set_page_config(
    page_title="Leakscope",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state="collapsed",
)
st.html(ROOT / "dashboard" / "style.css")
page = st.navigation(MENU, position="hidden" if state.is_presenting() else "top")
# The logo follows the theme, even if the theme changes while the page is open.
st.logo(str(ASSETS / "logo.svg"), size="large")

state.open_page(page.url_path or DEFAULT_PAGE)
downloads.reset_places()
terms.reset_explained_terms()
if state.is_presenting():
    st.html(ROOT / "dashboard" / "present.css")
    with st.container(key="leave"):
        leave_button()
else:
    next_question.show_menu(MENU, page)
with error_boundary():
    page.run()
    next_question.show_next(state.current_page())
