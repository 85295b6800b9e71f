"""From a canary to what became of it: known from before, or as a job that is watched."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.attacks.membership.memorisation.canaries import Canary
from core.attacks.membership.memorisation.memorise import (
    Memorised,
    MemoriseRequest,
    exposures_in,
    plant_and_watch,
)
from core.figures.memorisation import growth_figure
from core.jobs import Job
from core.results import Score
from core.studies.memorisation_summary import law_of
from dashboard import work
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.memorisation import state

__all__ = ["adopt_memorise_job", "experiment"]

_EXPOSURES = re.compile(r",? ?exposure by epoch [\d. ]+ bits")


def experiment(
    request: MemoriseRequest, texts: Sequence[str] | None, foreseen: Canary | None
) -> Memorised | None:
    """Return what became of a canary, or draw what starts, follows and stops its job.

    Parameters
    ----------
    texts : sequence of str or None
        Of an upload; a corpus is read within the job.
    foreseen : Canary or None
        Where its random part is known before the texts are read.
    """
    work.drop_others(MemoriseRequest, lambda other: other == request)
    known = state.result_of(request)
    if known is not None:
        return known
    offer = work.Offer(
        label="Plant it and train",
        key="memorise-start",
        on_click=partial(_start, texts),
        failed="The canary could not be watched",
        note=f"{_said(foreseen)} The model is trained beside this page, and the exposure shows "
        "after each epoch.",
        again="Train again",
        is_primary=True,
        tells=lambda told: _EXPOSURES.sub("", told),
        shows=partial(_watch, request, foreseen),
        is_kept=True,
    )
    done = work.take(request, offer)
    return state.remember(request, done.result) if done else None


def _said(canary: Canary | None) -> str:
    """Return what is random in a canary."""
    if canary is None:
        return "What is random in it depends on the texts: its rarest words, or words drawn there."
    bits = math.log2(canary.size)
    return plain(f"What is random in it is {canary.note.removeprefix('R: ')}: {bits:.1f} bits.")


def _start(texts: Sequence[str] | None, request: MemoriseRequest) -> None:
    # What was typed just before the click is not in the request that the button was drawn with.
    corpus = str(state.chosen("corpus"))
    request = state.chosen_request(request.corpus if corpus == state.UPLOAD else corpus)
    if texts is None and state.is_upload(request.corpus):
        texts = ()  # the file went with a reload: the work says that there are no sentences
    work.start(request, plant_and_watch, request, texts)


def _watch(request: MemoriseRequest, foreseen: Canary | None, job: Job) -> None:
    """Draw the exposure of each epoch so far."""
    so_far = state.live_exposures(job.id, exposures_in(job.message))
    if not so_far:
        return
    law = law_of(foreseen.size if foreseen else None)
    st.plotly_chart(
        growth_figure([Score(bits) for bits in so_far], (), law, request.settings.epochs),
        key="memorise-live",
        config=chart_config("leakscope-exposure", has_bar=False),
        alt=f"Exposure of the canary by epoch so far; after epoch {len(so_far)} it is "
        f"{so_far[-1]:.1f} bits",
    )


def adopt_memorise_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(MemoriseRequest):
        state.restore_request(request)
