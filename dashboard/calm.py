"""The one place where an error becomes a message on a page; a traceback never does."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from core.errors import CoreError

__all__ = ["apologise", "calm", "plain", "show_error"]

_LOG = logging.getLogger("leakscope")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")

_UNSEEN = "\N{WORD JOINER}"
_MADE_OF_TEXT = re.compile(
    r"(?<=http)(?=s?://)|(?<=www)(?=\.)"  # a web address
    r"|(?<=[-.\w+])(?=@[-\w]+\.)"  # an address of mail
    r"|(?<=:)(?=[-+\w]+:)"  # the name of an emoji, an icon or the logo
    r"|(?<=(?<!\S)[-<>~])(?=[-=>]+(?!\S))",  # an arrow or a dash
    re.IGNORECASE,
)
"""Where the browser's Markdown makes something of the text after escapes have done their work."""


def plain(text: str) -> str:
    r"""Return Markdown that shows a text as it is, and in which nothing of it becomes a link.

    Every ASCII punctuation mark is escaped. That does not keep the browser from making links,
    emoji and arrows of what it then reads: a character that is not seen parts those.

    Examples
    --------
    >>> print(plain("a_b $x$ :red[c]"))
    a\_b \$x\$ \:red\[c\]
    >>> plain("www.a.b") == "www\u2060\\.a\\.b"
    True
    """
    parted = _MADE_OF_TEXT.sub(_UNSEEN, " ".join(text.split()))
    return _PUNCTUATION.sub(r"\\\1", parted)


def show_error(error: CoreError | str, *, title: str = "That did not work") -> None:
    """Show a message that the user can act on."""
    st.error(plain(str(error)), title=title, icon=":material/error:")


@contextmanager
def calm() -> Iterator[None]:
    """Show the message of a CoreError; log the place of any other error and say sorry."""
    try:
        yield
    except CoreError as error:
        show_error(error)
    except Exception as fault:
        apologise(fault)


def apologise(fault: Exception) -> None:
    """Log where a fault of ours happened and say sorry on the page."""
    # Neither the page nor the log gets the message: it may hold what the user typed.
    frames = "".join(traceback.format_tb(fault.__traceback__))
    _LOG.error("%s, at\n%s", type(fault).__name__, frames)
    st.error(
        "This page could not be finished. It is a fault of ours, and what you typed was not "
        "stored. Reload the page or try another input; the terminal says where it happened.",
        title="Something went wrong",
        icon=":material/sentiment_dissatisfied:",
    )
