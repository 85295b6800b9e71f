"""Reports by the suffix of their file."""

from __future__ import annotations

from core.errors import InvalidInputError
from core.protocols import OnProgress
from core.story.deck import Deck
from core.story.html import html_report

__all__ = ["print_job", "report_bytes"]


def print_job(deck: Deck, suffix: str, on_progress: OnProgress) -> bytes:
    """Return the file of a report: the work of a job."""
    return report_bytes(deck, suffix)


def report_bytes(deck: Deck, suffix: str) -> bytes:
    """Return the file of a report.

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
        from core.story.pdf import pdf_report

        return pdf_report(deck)
    if suffix == ".pptx":
        from core.story.pptx import pptx_report

        return pptx_report(deck)
    raise InvalidInputError(f"A report is .html, .pdf or .pptx, not {suffix!r}.")
