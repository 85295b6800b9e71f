"""The frame around every page: navigation, logo, style, and the handling of errors."""

from __future__ import annotations

import streamlit as st

from core.assets import ASSETS, ROOT
from dashboard import state
from dashboard.calm import calm

IS_DARK = st.context.theme.type == "dark"
PAGES = [
    st.Page(
        ROOT / "pages" / "overview.py",
        title="Overview",
        icon=":material/visibility:",
        url_path="overview",
        default=True,
        help="What a text embedding gives away, with one live example.",
    ),
    st.Page(
        ROOT / "pages" / "inversion.py",
        title="Inversion",
        icon=":material/undo:",
        url_path="inversion",
        help="Type a sentence and see which of its words an attacker reads from the vector alone.",
    ),
    st.Page(
        ROOT / "pages" / "representations.py",
        title="Representations",
        icon=":material/compare_arrows:",
        url_path="representations",
        help="Which way of turning text into vectors leaks least at equal usefulness.",
    ),
    st.Page(
        ROOT / "pages" / "names.py",
        title="Names",
        icon=":material/badge:",
        url_path="names",
        help="Put names into sentences and see which of them an attacker reads from the vectors.",
    ),
    st.Page(
        ROOT / "pages" / "deniability.py",
        title="Deniability",
        icon=":material/blur_on:",
        url_path="deniability",
        help="Drag η and see what a sentence becomes and how deniable each of its words is.",
    ),
    st.Page(
        ROOT / "pages" / "tradeoff.py",
        title="Trade-off",
        icon=":material/balance:",
        url_path="tradeoff",
        help="What each defence saves, and what it costs in usefulness.",
    ),
    st.Page(
        ROOT / "pages" / "projection.py",
        title="Map",
        icon=":material/scatter_plot:",
        url_path="projection",
        help="Many texts as their vectors lie, and where a sentence or a defence puts them.",
    ),
]

st.set_page_config(
    page_title="Leakscope",
    page_icon=str(ASSETS / "icon.svg"),
    layout="wide",
    initial_sidebar_state="collapsed",
)
st.html(ROOT / "dashboard" / "style.css")
page = st.navigation(PAGES, position="hidden" if state.is_presenting() else "top")
st.logo(str(ASSETS / f"logo-{'dark' if IS_DARK else 'light'}.svg"), size="large")

with calm():
    page.run()
