"""From a request to a reading: at once for a fast attack, as a job for a slow one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import Reading, read_vector
from core.jobs import JobState
from core.protocols import Access, OnProgress, Vectors, no_progress
from core.specs import AttackSpec, EncoderSpec, settings_of
from dashboard import cache
from dashboard.calm import show_error
from dashboard.inversion import state
from dashboard.inversion.request import Request
from dashboard.progress import follow

__all__ = [
    "ENCODER",
    "adopt_jobs",
    "base_settings",
    "live_reading",
    "reading",
    "request_for",
    "settings_for",
    "stop_old_jobs",
    "unprepared_reading",
]

ENCODER = EncoderSpec(name="minilm")
"""The encoder under attack."""


def base_settings(name: str) -> dict[str, Any]:
    """Return the settings in force unless the visitor changes them.

    Those of the weights that ship; else those found to serve this encoder, over the paper's.
    """
    kind = INVERSION_ATTACKS[name].kind
    papers = {key: declared.default for key, declared in settings_of(kind).items()}
    return papers | (cache.shipped_settings(name, ENCODER) or _tuned(name))


def _tuned(name: str) -> dict[str, Any]:
    module = import_module(INVERSION_ATTACKS[name].path.partition(":")[0])
    return dict(getattr(module, "TUNED", {}))


def settings_for(name: str) -> dict[str, Any]:
    """Return the settings to open an attack with, those alone that it would not take by itself."""
    by_itself = {} if cache.shipped_settings(name, ENCODER) else _tuned(name)
    return by_itself | state.settings_of_attack(name)


def request_for(name: str, text: str) -> Request:
    """Return the request for an attack on a text, with the visitor's settings."""
    stop_words = state.counts_stop_words()
    settings = settings_for(name)
    if stop_words and INVERSION_ATTACKS[name].access is Access.WHITE_BOX:
        settings = {**settings, "keep_stop_words": True}
    return Request(text=text, spec=AttackSpec.of(name, settings), counts_stop_words=stop_words)


def reading(request: Request, vector: Vectors) -> Reading | None:
    """Return the reading, or draw what starts and follows an attack that takes its time."""
    is_live = INVERSION_ATTACKS[request.spec.name].is_live
    if is_live and cache.opens_at_once(request.spec.name, ENCODER):
        return live_reading(request, vector)
    return _slow_reading(request, vector)


def live_reading(request: Request, vector: Vectors) -> Reading:
    """Return the reading of a fast attack, kept for this session alone."""
    known = state.reading_of(request)
    return known or state.remember_reading(request, _read(request, vector))


def unprepared_reading(name: str, text: str, vector: Vectors) -> Reading:
    """Return what a fast attack reads from a vector that is not the text's own, not kept."""
    return _read(request_for(name, text), vector)


def _slow_reading(request: Request, vector: Vectors) -> Reading | None:
    known = state.reading_of(request)
    if known is not None:
        return known
    job_id = state.job_of(request)
    job = cache.jobs().view(job_id) if job_id else None
    if job is None:
        _offer(request, vector)
    elif job.state is JobState.DONE:
        return _take(request, job.id, job.result)
    elif not job.is_final:
        follow(job.id)
    else:
        if job.state is JobState.FAILED:
            show_error(
                job.error, title=f"{INVERSION_ATTACKS[request.spec.name].title} did not finish"
            )
        else:
            st.caption(f"Stopped after {job.seconds:.0f} s. Nothing of it was kept.")
        _offer(request, vector, is_again=True)
    return None


def _take(request: Request, job_id: str, reading: Reading) -> Reading:
    state.remember_job(request, None)
    cache.jobs().forget(job_id)
    return state.remember_reading(request, reading)


def _offer(request: Request, vector: Vectors, *, is_again: bool = False) -> None:
    name = request.spec.name
    if INVERSION_ATTACKS[name].is_live:
        st.caption(
            "Encodes its word list or its sentences first: a minute or so, once on this computer. "
            "After that it answers as you type."
        )
    else:
        st.caption("Takes seconds to a minute, so it runs when you ask for it.")
    st.button(
        f"Run {INVERSION_ATTACKS[name].title.lower()}{' again' if is_again else ''}",
        key=f"run-{name}",
        icon=":material/play_arrow:",
        help="It runs beside this page. You can go on reading, stop it, or reload the page.",
        on_click=_start,
        args=(request, vector),
    )


def _start(request: Request, vector: Vectors) -> None:
    def work(on_progress: OnProgress) -> Reading:
        on_progress(0.0, "Loading the attack")
        return _read(request, vector, on_progress)

    state.remember_job(request, cache.jobs().start(work, request=request))


def _read(request: Request, vector: Vectors, on_progress: OnProgress = no_progress) -> Reading:
    spec = request.spec
    return read_vector(
        spec.name,
        cache.attack(spec, ENCODER, on_progress),
        cache.encoder(ENCODER),
        request.text,
        vector,
        cache.guess(spec.name, ENCODER, request.counts_stop_words),
        counts_stop_words=request.counts_stop_words,
        on_progress=on_progress,
    )


def adopt_jobs() -> None:
    """Take up the jobs that the address names, after the page was reloaded."""
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or not isinstance(job.request, Request):
            continue
        if state.job_of(job.request) is None and state.reading_of(job.request) is None:
            state.restore(job.request, job_id)


def stop_old_jobs(text: str) -> None:
    """Stop the attacks on a sentence that is no longer shown."""
    for request, job_id in state.jobs_of_other_texts(text):
        cache.jobs().forget(job_id)
        state.remember_job(request, None)
