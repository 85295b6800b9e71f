"""Networks trained under noise (Tables 4 and 5): the part's controls and finding."""

from __future__ import annotations

from typing import Any

import streamlit as st

from leakscope.core.defences.trained.under_noise.registry import READERS
from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.findings.training import Read, under_noise
from leakscope.core.studies.training import read_under_noise
from leakscope.core.studies.training.points import UnderNoise
from leakscope.core.studies.training.privacy_paper import describe_similar_constrained
from leakscope.core.tasks.names import describe_task
from leakscope.dashboard import cache
from leakscope.dashboard.training.state import option_picker
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding

PAPER = (
    "Hollow diamonds: Qu et al. (2021), on BERT's word embeddings, placed at our η at which as "
    "many tokens stay unchanged."
)


def show_under_noise(slot: Any, found: UnderNoise) -> Finding:
    """Draw the part, with its finding in the slot; return the finding."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = option_picker(
            "task", "Task", found.tasks, describe_task, "What the network predicts from a text"
        )
        reader = option_picker(
            "network",
            "Network",
            found.readers_of(task),
            lambda name: READERS[name].title,
            "The network trained on what users send. The word embeddings stay fixed",
        )
    answer = under_noise(found, task, reader, _recall_by_eta())
    show_finding(slot, answer, "under-noise")
    has_paper = any(point.theirs is not None for point in found.of(task, reader))
    slot.caption(legend(has_paper, describe_similar_constrained(task, reader)))
    return answer


def legend(has_paper: bool, alike: str) -> str:
    """Explain the curves, and which of the paper's results are shown."""
    paper = (
        PAPER if has_paper else plain(f"The paper has no results for this task. {alike}".strip())
    )
    return f"Left is more private, up is more useful. Filled: measured here, with 95 % CI. {paper}"


def _recall_by_eta() -> Read:
    """Return the F1 of recovered words at each η; empty if the file is missing or damaged."""
    if not read_under_noise.SHIPPED.exists():
        return {}
    try:
        return cache.recall_under_noise()
    except CoreError as error:
        show_error(error, title="The leakage of the sent texts cannot be shown")
        return {}
