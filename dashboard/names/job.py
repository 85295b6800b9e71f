"""From sentences and names to their heat map: known from before, or as a job with progress."""

from __future__ import annotations

import streamlit as st

from core.jobs import Job, JobState
from core.names.experiment import NameExperiment, run_experiment
from core.names.person import parse_names
from core.names.sentences import read_sentences
from core.protocols import OnProgress
from core.specs import AttackSpec
from core.text import MAX_CHARACTERS, check_text
from dashboard import cache
from dashboard.calm import show_error
from dashboard.inversion.answers import ENCODER
from dashboard.names import state as names_state
from dashboard.names.state import NamesRequest
from dashboard.progress import follow

__all__ = ["adopt_names_job", "experiment"]


def experiment(request: NamesRequest) -> NameExperiment | None:
    """Return what came of a request, or draw what starts, follows and stops its job.

    Raises
    ------
    InvalidInputError
        Sentences or names that cannot be used.
    """
    known = names_state.experiment_of(request)
    waiting = names_state.names_job()
    if waiting is not None and waiting[0] != request:
        cache.jobs().forget(waiting[1])
        names_state.remember_names_job(None)
        waiting = None
    if known is not None:
        return known
    job = cache.jobs().view(waiting[1]) if waiting else None
    if job is None:
        _start(request)
        job = cache.jobs().view(names_state.names_job()[1])  # type: ignore[index]
    return _followed(request, job) if job else None


def _followed(request: NamesRequest, job: Job) -> NameExperiment | None:
    if job.state is JobState.DONE:
        names_state.remember_names_job(None)
        cache.jobs().forget(job.id)
        return names_state.remember_experiment(request, job.result)
    if not job.is_final:
        follow(job.id)
        return None
    if job.state is JobState.FAILED:
        show_error(job.error, title="The names could not be compared")
    else:
        st.info(f"Stopped after {job.seconds:.0f} s. Nothing of it was kept.",
                icon=":material/stop_circle:")  # fmt: skip
    st.button(
        "Compute",
        key="names-compute",
        type="primary",
        icon=":material/play_arrow:",
        help="It runs beside this page. You can stop it, or reload the page.",
        on_click=_start,
        args=(request,),
    )
    return None


def _start(request: NamesRequest) -> None:
    # Read here, so that what was mistyped is told at once.
    if len(request.names) > MAX_CHARACTERS:
        check_text(request.names, name="the list of names")
    names = parse_names(request.names.splitlines())
    sentences, names = read_sentences(request.sentences, names)

    def work(on_progress: OnProgress) -> NameExperiment:
        on_progress(0.0, "Loading the attack")
        attack = cache.attack(AttackSpec(name=request.attack), ENCODER)
        encoder = cache.encoder(ENCODER)
        return run_experiment(attack, encoder, sentences, names, on_progress=on_progress)

    job_id = cache.jobs().start(work, request=request)
    names_state.remember_names_job(request, job_id)


def adopt_names_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or not isinstance(job.request, NamesRequest):
            continue
        if names_state.names_job() is None:
            names_state.restore_request(job.request)
            names_state.remember_names_job(job.request, job_id)
