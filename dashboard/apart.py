"""Work on what visitors send, in a process of its own: a hostile file costs the server nothing.

Some hundred bytes of Parquet may stand for gigabytes, and what reads and draws is native code:
memory and time are bounded from outside. Who asks waits for the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from core.corpora.apart import call
from core.errors import InvalidInputError
from core.jobs import Jobs, JobState, Patience, Work
from dashboard.visitor import share, visitor

__all__ = ["LONGEST_SECONDS", "answered", "parsed", "printers", "readers"]

LONGEST_SECONDS = 120.0
"""For reading one file, or for printing one report, once its turn has come."""

_T = TypeVar("_T")


@st.cache_resource(show_spinner=False)
def readers() -> Jobs:
    """Return the queue of files to read, apart from that of slow work."""
    return _queue()


@st.cache_resource(show_spinner=False)
def printers() -> Jobs:
    """Return the queue of reports to print."""
    return _queue()


def _queue() -> Jobs:
    patience = Patience(longest_seconds=LONGEST_SECONDS, crowded_longest_seconds=LONGEST_SECONDS)
    return Jobs(max_waiting=60, patience=patience)


def parsed(read: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Return what a reader of the engine answers, from a process that may take so much alone.

    Parameters
    ----------
    read : callable
        A function of a module; it and its arguments can be sent to another process.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or not with so much memory and in so long.
    """
    with st.spinner("Reading the file"):
        found: _T = answered(readers(), (visitor(), share()), call, read, arguments, options)
    return found


def answered(jobs: Jobs, whose: tuple[str, str], work: Work, *arguments: Any) -> Any:
    """Return what a job of a visitor and their share comes to, and forget it.

    Raises
    ------
    InvalidInputError
        It failed, or took too long; the message says how.
    """
    job_id = jobs.start(work, *arguments, owner=whose[0], share=whose[1])
    try:
        job = None
        while job is None or not job.is_final:  # one that nobody looks at is given up
            job = jobs.wait(job_id, timeout=30.0)
            if job is None:
                raise InvalidInputError("The work was given up. Try again.")
    finally:
        jobs.forget(job_id)
    if job.state is not JobState.DONE:
        raise InvalidInputError(job.error or "The work was stopped. Try again.")
    return job.result
