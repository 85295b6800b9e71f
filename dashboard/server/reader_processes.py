"""Read uploaded files and print reports in limited processes, safe against hostile files.

A few hundred bytes of Parquet can expand to gigabytes, and the readers are native code: memory and
time are bounded from outside. The caller waits for the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from leakscope.core.corpora.readers.bounded_reading import call
from leakscope.core.errors import InvalidInputError
from leakscope.core.jobs import Jobs, JobState, Patience, Work
from leakscope.dashboard.server.visitor import share, visitor

LONGEST_SECONDS = 120.0
"""The time limit for reading one file or printing one report, without the time in the queue."""

_T = TypeVar("_T")


@st.cache_resource(show_spinner=False)
def readers() -> Jobs:
    """Return the server's queue for reading files, separate from that of slow jobs."""
    return _limited_queue()


@st.cache_resource(show_spinner=False)
def printers() -> Jobs:
    """Return the server's queue for rendering reports as PDF or PowerPoint."""
    return _limited_queue()


def _limited_queue() -> Jobs:
    """Create a job queue with LONGEST_SECONDS per job and at most 60 waiting jobs."""
    patience = Patience(longest_seconds=LONGEST_SECONDS, crowded_longest_seconds=LONGEST_SECONDS)
    return Jobs(max_waiting=60, patience=patience)


def run_reader(read: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Run a file reader in a process of limited memory and time; return its result.

    Parameters
    ----------
    read : callable
        A module-level function; it and its arguments must be picklable.

    Raises
    ------
    InvalidInputError
        The file cannot be read, or not within the limits of memory and time.
    """
    with st.spinner("Reading the file"):
        found: _T = run_and_wait(readers(), (visitor(), share()), call, read, arguments, options)
    return found


def run_and_wait(jobs: Jobs, whose: tuple[str, str], work: Work, *arguments: Any) -> Any:
    """Run a visitor's work in a queue, wait for it, and return its result; raise if it failed.

    Raises
    ------
    InvalidInputError
        The job failed or took too long; the message says which.
    """
    job_id = jobs.start(work, *arguments, owner=whose[0], share=whose[1])
    try:
        job = None
        while job is None or not job.is_final:  # the queue drops jobs that are not polled
            job = jobs.wait(job_id, timeout=30.0)
            if job is None:
                raise InvalidInputError("The work was cancelled. Try again.")
    finally:
        jobs.forget(job_id)
    if job.state is not JobState.DONE:
        raise InvalidInputError(job.error or "The work was stopped. Try again.")
    return job.result
