"""Slow work of a page: started, followed, taken, offered again, and adopted after a reload.

A request, a frozen dataclass of the page, is what a job is known by here; the address holds the
job's id, so that a reloaded page finds it. What runs is a function of the engine in a process of
its own: it knows neither the session nor Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st

from core.errors import CoreError
from core.jobs import Job, JobState, Work
from dashboard import cache
from dashboard.calm import calm, plain, show_error
from dashboard.visitor import share, visitor

__all__ = ["Offer", "adopt", "drop", "drop_done", "drop_others", "is_known", "start", "take"]

EVERY = 0.5
"""Seconds between two looks at a running job."""

SHARED = 20.0
"""Seconds that a result is kept after it was taken: the visitor may follow it in two tabs."""

_HELP = "It runs beside this page. You can go on reading, stop it, or reload the page."
_LOST = "Nothing unfinished is kept."
_BEST = "It did not come to its end: this is the best that it had by then."
_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a page says of work that is to be started, or did not come to its end.

    Parameters
    ----------
    label, key, icon : str
        Of the button that starts it.
    on_click : callable
        Given the request, starts it by `start`.
    failed : str
        The title over what went wrong.
    note : str
        Before it is started.
    kept : str
        Of it, after it was stopped.
    takes_best : bool
        Whether the best that it had by then is taken too, where it was stopped and tells it.
    tells : callable
        From what the work tells to what stands beside the bar of its progress.
    shows : callable, optional
        Draws what is to be seen of a job while it runs, below that bar.
    is_kept : bool
        Its result took long: a page that is reloaded finds it again, until nobody asked for it
        as long as the queue keeps what is finished.
    """

    label: str
    key: str
    on_click: Callable[[Any], None]
    failed: str
    note: str = ""
    kept: str = "Nothing of it was kept."
    takes_best: bool = False
    again: str = ""
    is_primary: bool = False
    tells: Callable[[str], str] = str
    shows: Callable[[Job], None] | None = None
    is_kept: bool = False


def start(request: Hashable, work: Work, *arguments: Any) -> None:
    """Queue work for a request; where that is refused, `take` says why."""
    try:
        job_id = cache.jobs().start(
            work, *arguments, request=request, owner=visitor(), share=share(), kind=_kind(request)
        )
    except CoreError as error:
        st.session_state["_refused_work"] = (request, error)
    else:
        _ids()[request] = job_id
        _tell_address(request)


def take(request: Hashable, offer: Offer) -> Job | None:
    """Return a job that is done, forgotten unless kept; else draw what starts or follows it.

    A stopped one is returned as well, below what starts it again, where the offer takes the best
    that it had.
    """
    job_id = _ids().get(request)
    job = cache.jobs().view(job_id) if job_id else None
    if job is not None and job.state is JobState.DONE:
        if not offer.is_kept:
            _collected(request)
        return job
    if job is not None and not job.is_final:
        _follow(job.id, offer)
        return None
    refused = st.session_state.pop("_refused_work", None)
    if refused is not None and refused[0] == request:
        show_error(refused[1], title="It was not started")
    elif job is None and offer.note:
        st.caption(offer.note)
    elif job is not None and job.state is JobState.FAILED:
        show_error(job.error, title=offer.failed)
    elif job is not None:
        kept = _BEST if _has_best(job, offer) else offer.kept
        st.caption(f"Stopped after {job.seconds:.0f} s. {kept}")
    _start_button(request, job, offer)
    return job if job is not None and _has_best(job, offer) else None


def _has_best(job: Job, offer: Offer) -> bool:
    """Return whether a job that was stopped handed over the best so far, and it is wanted."""
    return offer.takes_best and job.state is JobState.STOPPED and job.result is not None


def _start_button(request: Hashable, job: Job | None, offer: Offer) -> None:
    st.button(
        offer.again if job is not None and offer.again else offer.label,
        key=offer.key,
        type="primary" if offer.is_primary else "secondary",
        icon=":material/play_arrow:",
        help=_HELP,
        on_click=offer.on_click,
        args=(request,),
    )


def is_known(request: Hashable) -> bool:
    """Return whether there is a job for a request, whatever became of it."""
    job_id = _ids().get(request)
    return job_id is not None and cache.jobs().view(job_id) is not None


def drop(request: Hashable) -> None:
    """Stop a job and forget it."""
    job_id = _ids().pop(request, None)
    if job_id is not None:
        cache.jobs().forget(job_id)
        _tell_address(request)


def _collected(request: Hashable) -> None:
    """Forget a job whose result is here, once other tabs of the visitor had time to take it."""
    cache.jobs().forget_after(_ids().pop(request), SHARED)
    _tell_address(request)


def drop_others(kind: type[_T], is_wanted: Callable[[_T], bool]) -> None:
    """Stop and forget the jobs of a kind of request that nobody wants any more."""
    for request in [r for r in _ids() if isinstance(r, kind) and not is_wanted(r)]:
        drop(request)


def drop_done(kind: type[Hashable]) -> None:
    """Forget the jobs of a kind that are done."""
    for request, job_id in list(_ids().items()):
        job = cache.jobs().view(job_id) if isinstance(request, kind) else None
        if job is not None and job.state is JobState.DONE:
            drop(request)


def adopt(kind: type[_T]) -> list[_T]:
    """Take up the visitor's jobs that the address names; return the requests new to this session.

    The page was reloaded meanwhile: it has to set its controls to them. Of another visitor's jobs
    nothing is shown, nor that there are any.
    """
    found: list[_T] = []
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or job.owner != visitor():  # an address may have been passed on
            continue
        if isinstance(job.request, kind) and job.request not in _ids():
            _ids()[job.request] = job_id
            found.append(job.request)
    return found


@st.fragment(run_every=EVERY)
def _follow(job_id: str, offer: Offer) -> None:
    """Show a job until it is final, then have the whole page drawn again."""
    with calm():
        job = cache.jobs().view(job_id)
        if job is None or job.is_final:
            st.rerun()
        told = replace(job, message=offer.tells(job.message))
        st.progress(job.fraction, text=plain(_sentence(told)))
        st.button(
            "Stop",
            key=f"stop-{job_id}",
            icon=":material/stop_circle:",
            help="Ends this work within two seconds. "
            + ("What it has by then is shown." if offer.takes_best else _LOST),
            on_click=cache.jobs().stop,
            args=(job_id,),
        )
        if offer.shows is not None:
            offer.shows(job)


def _sentence(job: Job) -> str:
    """Return how far a job is, or who comes first, and for how long if that can be said."""
    if job.state is JobState.WAITING:
        jobs = "1 job" if job.n_before == 1 else f"{job.n_before} jobs"
        return f"Waiting: {jobs} before yours{_about(job, '')}"
    return f"{job.message} ({job.seconds:.0f} s{_about(job, ' left')})"


def _about(job: Job, word: str) -> str:
    seconds = job.seconds_left
    if seconds is None:
        return ""
    told = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f", about {told}{word}"


def _kind(request: Hashable) -> str:
    """Return what tells how long work takes, beside what runs: the attack, where there is one."""
    return str(getattr(getattr(request, "spec", None), "name", ""))


def _ids() -> dict[Hashable, str]:
    """Return the jobs of this session by request."""
    found: dict[Hashable, str] = st.session_state.setdefault("_jobs", {})
    return found


def _tell_address(request: Hashable) -> None:
    """Name in the address the jobs of the same kind, which are those of this page."""
    ids = [job_id for other, job_id in _ids().items() if type(other) is type(request)]
    if ids:
        st.query_params["job"] = ids
    else:
        st.query_params.pop("job", None)
