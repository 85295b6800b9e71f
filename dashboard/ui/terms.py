"""Explanations of glossary terms, shown where a page first uses a term."""

from __future__ import annotations

import re

import streamlit as st

from leakscope.core.glossary import GLOSSARY, explain
from leakscope.dashboard.ui.state import is_presenting

_EXPLAINED = "_explained_terms"
"""Session key of the terms that this run of the page has explained."""


def _compile_pattern(term: str) -> re.Pattern[str]:
    """Compile the pattern that finds a glossary term, its plural and its symbol."""
    word, _, sign = term.partition(" (")
    is_short = not word.islower()  # F1, AUC: case-sensitive
    # Not within another word or term: "macro-F1" contains no F1, and "access control" no control.
    found = rf"(?<![\w-])(?<!access ){re.escape(word)}s?\b" + (
        f"|{re.escape(sign.rstrip(')'))}" if sign else ""
    )
    return re.compile(found, re.NOFLAG if is_short else re.IGNORECASE)


_PATTERNS = {term: _compile_pattern(term) for term in GLOSSARY}


def terms_in(text: str) -> list[str]:
    """Return the glossary terms that a text uses, in order of first use.

    Examples
    --------
    >>> terms_in("Encoders: an F1 of 3, at η 75")
    ['encoder', 'F1', 'eta (η)']
    """
    found = {
        term: match.start() for term, kind in _PATTERNS.items() if (match := kind.search(text))
    }
    return sorted(found, key=lambda term: found[term])


def reset_explained_terms() -> None:
    """Forget which terms were explained on the page, before a page is drawn."""
    st.session_state[_EXPLAINED] = set()


def new_term_help(text: str) -> str | None:
    """Explain a text's glossary terms that the page has not explained yet; None if none.

    For `help=` of Streamlit's texts, whose mark is reachable by pointer and keyboard. None if there
    is nothing to explain, and in presentation mode.
    """
    explained: set[str] = st.session_state.setdefault(_EXPLAINED, set())
    new = [term for term in terms_in(text) if term not in explained]
    if not new or is_presenting():
        return None
    explained.update(new)
    return "\n\n".join(f"**{term}**: {explain(term)}" for term in new)
