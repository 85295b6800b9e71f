"""Addresses that open a view."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit

import streamlit as st

__all__ = ["link"]


def link(page: str, query: Sequence[tuple[str, str]]) -> None:
    """Draw the address of a view, to be copied."""
    here = urlsplit(st.context.url or "")
    origin = f"{here.scheme}://{here.netloc}" if here.netloc else ""
    st.caption("This address holds your sentence: whoever gets it, and their browser, sees it.")
    st.code(f"{origin}/{page}?{urlencode(query)}", language=None, wrap_lines=True)
