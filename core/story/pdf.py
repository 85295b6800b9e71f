"""A story as PDF: the HTML report, printed."""

from __future__ import annotations

from core.browser import print_document
from core.story.deck import Deck
from core.story.html import html_report

__all__ = ["pdf_report"]


def pdf_report(deck: Deck) -> bytes:
    """Return the report as PDF, a slide a page and the appendix after them.

    Raises
    ------
    MissingDependencyError
        There is no Chromium or Chrome.
    """
    return print_document(html_report(deck))
