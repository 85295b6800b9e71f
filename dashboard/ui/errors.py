"""Error messages on pages and in the log; tracebacks are never shown."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.prose import plain

_LOG = logging.getLogger("leakscope")


def show_error(error: CoreError | str, *, title: str = "That did not work") -> None:
    """Draw an error's message on the page, below a title."""
    st.error(plain(str(error)), title=title, icon=":material/error:")


@contextmanager
def error_boundary() -> Iterator[None]:
    """Show errors of the `with` block on the page; log unexpected ones and show an apology."""
    try:
        yield
    except CoreError as error:
        show_error(error)
    except Exception as fault:
        apologise(fault)


def apologise(fault: Exception) -> None:
    """Log where an unexpected error happened (not its message), and show an apology."""
    # Neither the page nor the log gets the message: it may hold what the user typed.
    frames = "".join(traceback.format_tb(fault.__traceback__))
    _LOG.error("%s, at\n%s", type(fault).__name__, frames)
    st.error(
        "This page could not be completed. This is a bug in Leakscope; what you typed was not "
        "stored. Reload the page or try another input. The terminal shows where it happened.",
        title="Something went wrong",
        icon=":material/sentiment_dissatisfied:",
    )
