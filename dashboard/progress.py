"""A slow attack while it runs: how far it is, and the button that stops it."""

from __future__ import annotations

import streamlit as st

from core.jobs import Job, JobState
from dashboard import cache
from dashboard.calm import calm, plain

__all__ = ["follow"]

EVERY = 0.5
"""Seconds between two looks at a running job."""

_LEAST_SHARE, _LEAST_SECONDS = 0.03, 4.0
"""Of a job that must be done, and run, before it is said how much longer it takes."""


@st.fragment(run_every=EVERY)
def follow(job_id: str) -> None:
    """Show a job until it is final, then have the whole page drawn again."""
    with calm():
        job = cache.jobs().view(job_id)
        if job is None or job.is_final:
            st.rerun()
        st.progress(job.fraction, text=plain(_sentence(job)))
        st.button(
            "Stop",
            key=f"stop-{job_id}",
            icon=":material/stop_circle:",
            help="Ends this work at its next step. Nothing of it is kept.",
            on_click=cache.jobs().stop,
            args=(job_id,),
        )


def _sentence(job: Job) -> str:
    if job.state is JobState.WAITING:
        return "Waiting: other slow work is running."
    return f"{job.message} ({job.seconds:.0f} s{_left(job)})"


def _left(job: Job) -> str:
    """Return how much longer it takes if it goes on as it did, once that can be said."""
    if job.fraction < _LEAST_SHARE or job.seconds < _LEAST_SECONDS:
        return ""
    left = job.seconds * (1 / job.fraction - 1)
    return f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} min left"
