"""The reconstructed sentence: its current state while an attack runs, and its search steps."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.attacks.inversion.reconstruct import progress
from leakscope.core.jobs import Job
from leakscope.core.results import SentenceStep
from leakscope.dashboard.ui import markup

_MOST_STEPS = 8


def step_summary(message: str) -> str:
    """Remove the sentence from a job's progress message."""
    step = progress.parse_step(message)
    return message if step is None else progress.format_step(step, with_text=False)


def show_current_sentence(true: str, job: Job) -> None:
    """Draw the current sentence of a running attack, if its progress message has one."""
    step = progress.parse_step(job.message)
    if step is not None:
        st.html(markup.scored_sentence(step.text, true))


def show_sentence(reading: Reading) -> None:
    """Draw the reconstructed sentence and, in an expander, its search steps."""
    found = reading.recovery.sentence
    if found is None:
        return
    st.html(markup.reconstructed_sentence(reading))
    if len(found.steps) > 1:
        with st.expander("Steps of the search", icon=":material/stairs:"):
            st.html(markup.sentence_steps(sample_steps(found.steps), reading.text))


def sample_steps(steps: Sequence[SentenceStep]) -> list[SentenceStep]:
    """Keep at most _MOST_STEPS steps, evenly spaced, with the first and the last."""
    n = min(len(steps), _MOST_STEPS)
    last = len(steps) - 1
    return [steps[round(i * last / max(n - 1, 1))] for i in range(n)]
