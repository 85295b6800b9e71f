"""Terms of the glossary where a page uses them first: their meaning under the mark beside them."""

from __future__ import annotations

import re

import streamlit as st

from core.glossary import GLOSSARY, explained
from dashboard.state import is_presenting

__all__ = ["forget_terms", "help_of", "terms_in"]

_TOLD = "_terms_told"
"""In the session: what a text above has explained, in this run of the page."""


def _pattern(term: str) -> re.Pattern[str]:
    """Return what a term is found by: its plural too, its sign where it has one."""
    word, _, sign = term.partition(" (")
    is_short = not word.islower()  # F1, AUC: as they are spelt
    found = rf"\b{re.escape(word)}s?\b" + (f"|{re.escape(sign.rstrip(')'))}" if sign else "")
    return re.compile(found, re.NOFLAG if is_short else re.IGNORECASE)


_PATTERNS = {term: _pattern(term) for term in GLOSSARY}


def terms_in(text: str) -> list[str]:
    """Return the terms of the glossary that a text uses, in the order in which it does.

    Examples
    --------
    >>> terms_in("Encoders: an F1 of 3, at η 75")
    ['encoder', 'F1', 'eta (η)']
    """
    found = {
        term: match.start() for term, kind in _PATTERNS.items() if (match := kind.search(text))
    }
    return sorted(found, key=lambda term: found[term])


def forget_terms() -> None:
    """Begin a page, on which nothing has been explained yet."""
    st.session_state[_TOLD] = set()


def help_of(text: str) -> str | None:
    """Return what the terms mean that a text uses and none before it on the page did.

    For `help=` of Streamlit's texts: a mark that the pointer and the keyboard reach. None where
    there is nothing to explain, and while a page is presented.
    """
    told: set[str] = st.session_state.setdefault(_TOLD, set())
    new = [term for term in terms_in(text) if term not in told]
    if not new or is_presenting():
        return None
    told.update(new)
    return "\n\n".join(f"**{term}**: {explained(term)}" for term in new)
