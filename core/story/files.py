"""Export a report as HTML, PDF or PowerPoint."""

from __future__ import annotations

from leakscope.core.browser import print_document
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import OnProgress
from leakscope.core.story.deck import Deck
from leakscope.core.story.html import html_report


def print_job(deck: Deck, suffix: str, on_progress: OnProgress) -> bytes:
    """Render a deck to bytes, as the entry point of a background job; reports no progress."""
    return report_bytes(deck, suffix)


def report_bytes(deck: Deck, suffix: str) -> bytes:
    """Render a deck as HTML, PDF or PowerPoint, by the file suffix; return the bytes.

    Parameters
    ----------
    suffix : str
        `.html`, `.pdf` or `.pptx`.

    Raises
    ------
    MissingDependencyError
        What makes this kind of file is not installed; the message says what to do.
    """
    if suffix == ".html":
        return html_report(deck).encode()
    if suffix == ".pdf":
        return print_document(html_report(deck))
    if suffix == ".pptx":
        from leakscope.core.story.pptx import pptx_report

        return pptx_report(deck)
    raise InvalidInputError(f"A report is .html, .pdf or .pptx, not {suffix!r}.")
