"""Descriptions of methods: source, summary and formula."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from leakscope.core.registry import Entry


def draw_entries(entries: Iterable[Entry]) -> None:
    """Draw the title, reference, summary and formula of each registry entry."""
    for entry in entries:
        st.markdown(f"**{entry.title}** ({entry.reference}). {entry.summary}")
        if entry.formula:
            st.latex(entry.formula)
