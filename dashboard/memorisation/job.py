"""Plant a canary and train: from the session's cache, or in a background job."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

import streamlit as st

from leakscope.core.attacks.membership.memorisation.canaries import Canary
from leakscope.core.attacks.membership.memorisation.memorise import (
    CanaryMemorisation,
    MemoriseRequest,
    parse_exposures,
    run_request,
)
from leakscope.core.figures.memorisation import growth_figure
from leakscope.core.findings.prose import plain
from leakscope.core.jobs import Job
from leakscope.core.results import Score
from leakscope.core.studies.memorisation.summary import chance_exposure
from leakscope.dashboard.memorisation import state
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.charts import chart_config

_EXPOSURES = re.compile(r",? ?exposure by epoch [\d. ]+ bits")


def result_or_controls(
    request: MemoriseRequest, texts: Sequence[str] | None, canary: Canary | None
) -> CanaryMemorisation | None:
    """Return the experiment's result, or draw the controls of its job and return None.

    Parameters
    ----------
    texts : sequence of str or None
        The sentences of an upload; the job itself reads a corpus.
    canary : Canary or None
        The canary, if its set of secrets does not depend on the texts.
    """
    work.drop_others(MemoriseRequest, lambda other: other == request)
    known = state.result_of(request)
    if known is not None:
        return known
    offer = work.Offer(
        label="Plant it and train",
        key="memorise-start",
        on_click=partial(_start, texts),
        failed="The training failed",
        note=f"{_describe_secret(canary)} The model is trained in the background, and the exposure "
        "appears after each epoch.",
        restart_label="Train again",
        is_primary=True,
        format_message=lambda message: _EXPOSURES.sub("", message),
        draw_progress=partial(_show_live_exposure, request, canary),
        keeps_result=True,
    )
    done = work.draw_job(request, offer)
    return state.remember(request, done.result) if done else None


def _describe_secret(canary: Canary | None) -> str:
    """Describe the random part of a canary and its bits."""
    if canary is None:
        return "The secret depends on the texts: the canary's rarest words, or words drawn there."
    bits = math.log2(canary.size)
    secret = canary.note.removeprefix("R: ")
    return plain(f"The secret ({secret}) can reach an exposure of up to {bits:.1f} bits.")


def _start(texts: Sequence[str] | None, request: MemoriseRequest) -> None:
    """Start the job that plants the canary and trains, with the controls' current settings."""
    # Read the controls again: the button was drawn before the latest change.
    corpus = str(state.choice("corpus"))
    request = state.chosen_request(request.corpus if corpus == state.UPLOAD else corpus)
    if texts is None and state.is_upload(request.corpus):
        texts = ()  # the file was lost in a reload: the job reports no sentences
    work.start(request, run_request, request, texts)


def _show_live_exposure(request: MemoriseRequest, canary: Canary | None, job: Job) -> None:
    """Draw the exposure after each epoch of a running job."""
    so_far = state.live_exposures(job.id, parse_exposures(job.message))
    if not so_far:
        return
    law = chance_exposure(canary.size if canary else None)
    st.plotly_chart(
        growth_figure([Score(bits) for bits in so_far], (), law, request.settings.epochs),
        key="memorise-live",
        config=chart_config("leakscope-exposure", has_bar=False),
        alt=f"Exposure of the canary by epoch so far; after epoch {len(so_far)} it is "
        f"{so_far[-1]:.1f} bits",
    )


def adopt_memorise_job() -> None:
    """Restore the controls from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(MemoriseRequest):
        state.restore_request(request)
