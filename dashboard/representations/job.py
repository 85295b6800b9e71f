"""Encoders fitted for a sentence: at once where they are in memory, as a job where they are not."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from core.errors import CoreError
from core.figures.representations import encoder_title
from core.jobs import JobState
from core.protocols import Encoder, OnProgress
from core.specs import EncoderSpec
from core.studies.prepared import Preparation, Prepared, prepare
from dashboard import cache
from dashboard.calm import show_error
from dashboard.progress import follow
from dashboard.representations.state import (
    TryRequest,
    remember_try_job,
    restore_try,
    try_job,
)

__all__ = ["SHIPPED_ATTACK", "adopt_try_job", "prepared_encoders"]

SHIPPED_ATTACK = "probe_mlc"
"""Answers besides, where trained weights of it come with an encoder."""

_MOST_SHARED = 24
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _shared() -> OrderedDict[Preparation, Prepared]:
    """Return fitted encoders, which know corpora alone: all sessions may see them."""
    return OrderedDict()


def adopt_try_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is not None and isinstance(job.request, TryRequest) and try_job() is None:
            restore_try(job.request)
            remember_try_job(job.request, job_id)


def prepared_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the encoders ready to answer, or draw what starts, follows and stops their job."""
    _stop_other(request)
    ready, waiting = _known(request), try_job()
    if ready is not None:
        if waiting is not None:  # done, or another session was faster
            cache.jobs().forget(waiting[1])
            remember_try_job(None)
        return ready
    job = cache.jobs().view(waiting[1]) if waiting else None
    if job is not None and not job.is_final:
        follow(job.id)
        return None
    if job is not None and job.state is JobState.DONE:
        cache.jobs().forget(job.id)
        remember_try_job(None)
        return dict(job.result)
    if job is not None and job.state is JobState.FAILED:
        show_error(job.error, title="The encoders could not be fitted")
    if job is not None and job.state is JobState.STOPPED:
        st.caption(f"Stopped after {job.seconds:.0f} s. Encoders that were finished are kept.")
    _offer(request)
    return None


def _offer(request: TryRequest) -> None:
    n = len(request.encoders)
    st.button(
        f"Invert from {n} encoder{'s' if n > 1 else ''}",
        key="try-encoders",
        type="primary",
        icon=":material/play_arrow:",
        help="Fits each encoder, and an attack on it. It runs beside this page: you can go on "
        "reading, stop it, or reload the page.",
        on_click=_start,
        args=(request,),
    )
    st.caption(
        "Each encoder is fitted once for these sentences and kept on this computer; your sentence "
        "is not."
    )


def _start(request: TryRequest) -> None:
    def work(on_progress: OnProgress) -> dict[str, Prepared]:
        return _prepare(request, on_progress)

    try:
        remember_try_job(request, cache.jobs().start(work, request=request))
    except CoreError as error:
        show_error(error)


def _plans(request: TryRequest) -> dict[str, Preparation]:
    shared = {"corpus": request.corpus, "n_texts": request.n_texts}
    return {name: Preparation(encoder=name, **shared) for name in request.encoders}  # type: ignore[arg-type]


def _known(request: TryRequest) -> dict[str, Prepared] | None:
    """Return what is in memory, if that is all."""
    with _LOCK:
        found = {name: _shared().get(plan) for name, plan in _plans(request).items()}
    ready = {name: prepared for name, prepared in found.items() if prepared is not None}
    return ready if len(ready) == len(found) else None


def _prepare(request: TryRequest, on_progress: OnProgress) -> dict[str, Prepared]:
    ready: dict[str, Prepared] = {}
    n = len(request.encoders)
    for i, (name, plan) in enumerate(_plans(request).items()):

        def report(done: float, told: str, i: int = i, name: str = name) -> None:
            on_progress((i + done) / n, f"{encoder_title(name)} ({i + 1} of {n}): {told}")

        with _LOCK:
            known = _shared().get(plan)
        report(0.0, "starting")
        ready[name] = known or prepare(plan, report, load=_load)
        if cache.shipped_settings(SHIPPED_ATTACK, EncoderSpec(name=name)):
            cache.opened(SHIPPED_ATTACK, EncoderSpec(name=name))
        with _LOCK:
            _shared()[plan] = ready[name]
            _shared().move_to_end(plan)
            while len(_shared()) > _MOST_SHARED:
                _shared().popitem(last=False)
    return ready


def _load(name: str) -> Encoder:
    return cache.encoder(EncoderSpec(name=name))


def _stop_other(request: TryRequest) -> None:
    waiting = try_job()
    if waiting is not None and waiting[0] != request:
        cache.jobs().forget(waiting[1])
        remember_try_job(None)
