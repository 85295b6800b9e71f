"""A sentence that is being read: as it grows, and the steps that it went through."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.attacks.inversion.reading import Reading
from core.attacks.inversion.reconstruct import progress
from core.jobs import Job
from core.results import SentenceStep
from dashboard import markup

__all__ = ["head", "read", "shown", "some_of"]

_MOST_STEPS = 8


def head(message: str) -> str:
    """Return what stands beside the bar: all but the sentence, which stands below it."""
    step = progress.step_of(message)
    return message if step is None else progress.told(step, with_text=False)


def shown(true: str, job: Job) -> None:
    """Draw the sentence that a running attack has by now, where it writes one."""
    step = progress.step_of(job.message)
    if step is not None:
        st.html(markup.written(step.text, true))


def read(reading: Reading) -> None:
    """Draw the sentence as it was read, and what stood there before."""
    found = reading.recovery.sentence
    if found is None:
        return
    st.html(markup.read_sentence(reading))
    if len(found.steps) > 1:
        with st.expander("How the sentence grew", icon=":material/stairs:"):
            st.html(markup.sentence_steps(some_of(found.steps), reading.text))


def some_of(steps: Sequence[SentenceStep]) -> list[SentenceStep]:
    """Return the first step, the last, and some evenly between."""
    n = min(len(steps), _MOST_STEPS)
    last = len(steps) - 1
    return [steps[round(i * last / max(n - 1, 1))] for i in range(n)]
