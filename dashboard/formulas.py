"""What a page explains of the methods behind it: each with its source and its formula."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from core.registry import Entry

__all__ = ["draw_entries"]


def draw_entries(entries: Iterable[Entry]) -> None:
    """Draw what entries of a registry are, and the formula of each that has one."""
    for entry in entries:
        st.markdown(f"**{entry.title}** ({entry.reference}). {entry.summary}")
        if entry.formula:
            st.latex(entry.formula)
