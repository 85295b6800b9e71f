"""Background jobs of a page: start, progress, result, and recovery after a reload.

A job is identified by its request, a frozen dataclass of the page. The URL holds the job's id, so
that a reloaded page finds it. The work itself is a function of the engine in another process,
which knows neither the session nor Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.findings.prose import plain
from leakscope.core.jobs import Job, JobState, Work
from leakscope.dashboard import cache
from leakscope.dashboard.server.visitor import share, visitor
from leakscope.dashboard.ui.errors import error_boundary, show_error

EVERY = 0.5
"""Seconds between two updates of a running job's progress."""

SHARED = 20.0
"""Seconds that a result is kept after its first use: the visitor may have it open in two tabs."""

_HELP = "Runs in the background. You can continue reading, stop it or reload the page."
_LOST = "Unfinished work is discarded."
_BEST = "This is the best result so far; the work did not finish."
_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The labels and options of a job's controls on a page.

    Parameters
    ----------
    label, key : str
        Label and key of the start button.
    on_click : callable
        Starts the job of a request by `start`.
    failed : str
        The title of the error message.
    note : str
        A caption before the job is started.
    stopped_note : str
        What is kept of a stopped job, in words.
    accepts_best : bool
        Whether the best result so far of a stopped job is used.
    restart_label : str
        The label of the start button after a job ended without a result.
    is_primary : bool
        Whether the start button is highlighted as the page's main action.
    format_message : callable
        Converts the job's progress message to the text beside the progress bar.
    draw_progress : callable, optional
        Draws intermediate results of a running job below the progress bar.
    keeps_result : bool
        Whether a reloaded page finds the result again, until the queue drops it. For slow jobs.
    """

    label: str
    key: str
    on_click: Callable[[Any], None]
    failed: str
    note: str = ""
    stopped_note: str = "Nothing was kept."
    accepts_best: bool = False
    restart_label: str = ""
    is_primary: bool = False
    format_message: Callable[[str], str] = str
    draw_progress: Callable[[Job], None] | None = None
    keeps_result: bool = False


def start(request: Hashable, work: Work, *arguments: Any) -> None:
    """Queue a background job for a request; if the queue refuses, `draw_job` shows the error."""
    try:
        job_id = cache.jobs().start(
            work,
            *arguments,
            request=request,
            owner=visitor(),
            share=share(),
            # Jobs are expected to last as long as the last one with the same attack.
            kind=str(getattr(getattr(request, "spec", None), "name", "")),
        )
    except CoreError as error:
        st.session_state["_refused_work"] = (request, error)
    else:
        _job_ids()[request] = job_id
        _update_query(request)


def draw_job(request: Hashable, offer: Offer) -> Job | None:
    """Draw a job's start button or progress; return the job once it is done, else None.

    A stopped job is returned too, below its restart button, if the offer accepts its best result
    so far.
    """
    job_id = _job_ids().get(request)
    job = cache.jobs().view(job_id) if job_id else None
    if job is not None and job.state is JobState.DONE:
        if not offer.keeps_result:  # other tabs can still read it for a while
            cache.jobs().forget_after(_job_ids().pop(request), SHARED)
            _update_query(request)
        return job
    if job is not None and not job.is_final:
        _show_progress(job.id, offer)
        return None
    refused = st.session_state.pop("_refused_work", None)
    if refused is not None and refused[0] == request:
        show_error(refused[1], title="The work was not started")
    elif job is None and offer.note:
        st.caption(offer.note)
    elif job is not None and job.state is JobState.FAILED:
        show_error(job.error, title=offer.failed)
    elif job is not None:
        kept = _BEST if _has_best(job, offer) else offer.stopped_note
        st.caption(f"Stopped after {job.seconds:.0f} s. {kept}")
    _start_button(request, job, offer)
    return job if job is not None and _has_best(job, offer) else None


def _has_best(job: Job, offer: Offer) -> bool:
    """Return whether a job was stopped with a best result so far, and the offer accepts it."""
    return offer.accepts_best and job.state is JobState.STOPPED and job.result is not None


def _start_button(request: Hashable, job: Job | None, offer: Offer) -> None:
    """Draw the button that starts, or restarts, the job of a request."""
    st.button(
        offer.restart_label if job is not None and offer.restart_label else offer.label,
        key=offer.key,
        type="primary" if offer.is_primary else "secondary",
        icon=":material/play_arrow:",
        help=_HELP,
        on_click=offer.on_click,
        args=(request,),
    )


def is_known(request: Hashable) -> bool:
    """Return whether this session has a job for a request, in any state."""
    job_id = _job_ids().get(request)
    return job_id is not None and cache.jobs().view(job_id) is not None


def drop(request: Hashable) -> None:
    """Stop the job of a request and forget it; do nothing without one."""
    job_id = _job_ids().pop(request, None)
    if job_id is not None:
        cache.jobs().forget(job_id)
        _update_query(request)


def drop_others(kind: type[_T], is_wanted: Callable[[_T], bool]) -> None:
    """Stop and forget the session's jobs of a request type that `is_wanted` rejects."""
    for request in [r for r in _job_ids() if isinstance(r, kind) and not is_wanted(r)]:
        drop(request)


def drop_done(kind: type[Hashable]) -> None:
    """Forget the session's finished jobs of a request type."""
    for request, job_id in list(_job_ids().items()):
        job = cache.jobs().view(job_id) if isinstance(request, kind) else None
        if job is not None and job.state is JobState.DONE:
            drop(request)


def adopt_jobs(kind: type[_T]) -> list[_T]:
    """Take over the visitor's jobs that the URL names; return requests new to the session.

    After a reload, the page must set its controls to the requests. Other visitors' jobs are
    ignored, without a message.
    """
    found: list[_T] = []
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or job.owner != visitor():  # an address may have been passed on
            continue
        if isinstance(job.request, kind) and job.request not in _job_ids():
            _job_ids()[job.request] = job_id
            found.append(job.request)
    return found


@st.fragment(run_every=EVERY)
def _show_progress(job_id: str, offer: Offer) -> None:
    """Draw a job's progress and stop button until it is final, then rerun the page."""
    with error_boundary():
        job = cache.jobs().view(job_id)
        if job is None or job.is_final:
            st.rerun()
        shown = replace(job, message=offer.format_message(job.message))
        st.progress(job.fraction, text=plain(_describe_progress(shown)))
        st.button(
            "Stop",
            key=f"stop-{job_id}",
            icon=":material/stop_circle:",
            help="Stops this work within two seconds. "
            + ("The best result so far is shown." if offer.accepts_best else _LOST),
            on_click=cache.jobs().stop,
            args=(job_id,),
        )
        if offer.draw_progress is not None:
            offer.draw_progress(job)


def _describe_progress(job: Job) -> str:
    """Describe a job's progress or its place in the queue, with the time left if known."""
    if job.state is JobState.WAITING:
        jobs = "1 job" if job.n_before == 1 else f"{job.n_before} jobs"
        return f"Waiting: {jobs} before yours{_describe_time_left(job, '')}"
    return f"{job.message} ({job.seconds:.0f} s{_describe_time_left(job, ' left')})"


def _describe_time_left(job: Job, word: str) -> str:
    """Describe a job's remaining time as a clause; "" if unknown."""
    seconds = job.seconds_left
    if seconds is None:
        return ""
    duration = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f", about {duration}{word}"


def _job_ids() -> dict[Hashable, str]:
    """Return the session's dictionary of job ids by request, which callers change."""
    found: dict[Hashable, str] = st.session_state.setdefault("_jobs", {})
    return found


def _update_query(request: Hashable) -> None:
    """Set the URL's job ids to those of all jobs with this request's type."""
    ids = [job_id for other, job_id in _job_ids().items() if type(other) is type(request)]
    if ids:
        st.query_params["job"] = ids
    else:
        st.query_params.pop("job", None)
