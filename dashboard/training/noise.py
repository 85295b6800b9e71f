"""Networks under noise, and pretrained under noise (Tables 4 to 7): controls and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES, READERS
from leakscope.core.errors import CoreError
from leakscope.core.figures.training import loss_figure
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.prose import plain
from leakscope.core.findings.training import Read, pretrained, under_noise
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.training import summary as training_summary
from leakscope.core.studies.training.privacy_paper import (
    describe_similar_adapted,
    describe_similar_constrained,
)
from leakscope.core.studies.training.summary import Adapted, Pretrained, UnderNoise
from leakscope.core.tasks.names import describe_task
from leakscope.dashboard import cache
from leakscope.dashboard.training.state import option_picker
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.errors import show_error
from leakscope.dashboard.ui.finding import show_finding

PAPER = (
    "Hollow diamonds: Qu et al. (2021), on BERT's word embeddings, placed at our η at which as "
    "many tokens stay unchanged."
)


def show_under_noise(slot: Any, found: UnderNoise) -> Finding:
    """Draw the section on training under noise, its finding in the slot; return the finding."""
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
    """Explain in sentences how to read the curves, and which of the paper's results are shown."""
    paper = (
        PAPER if has_paper else plain(f"The paper has no results for this task. {alike}".strip())
    )
    return f"Left is more private, up is more useful. Filled: measured here, with 95 % CI. {paper}"


def _recall_by_eta() -> Read:
    """Load the F1 of recovered words by mechanism and η; {} if missing or damaged."""
    if not training_summary.RECOVERED.exists():
        return {}
    try:
        return cache.recall_under_noise()
    except CoreError as error:
        show_error(error, title="The leakage of the sent texts cannot be shown")
        return {}


def show_pretraining(slot: Any, found: Pretrained) -> Finding:
    """Draw the section on pretraining, its finding in the slot; return the finding."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = option_picker(
            "task", "Task", found.tasks, describe_task, "What the network predicts from a text"
        )
        mechanism = option_picker(
            "sends",
            "Users send",
            found.mechanisms_of(task),
            lambda name: DEFENCES[name].title,
            "The texts on which the network is pretrained, fine-tuned and tested",
        )
        etas = [f"{eta:g}" for eta in sorted({p.eta for p in found.of(task, mechanism)})]
        eta = option_picker(
            "eta",
            "η",
            etas,
            lambda eta: f"η {eta}",
            "For the headline and the loss curves; a smaller η means more noise",
        )
    points = found.of(task, mechanism)
    here = [point for point in points if f"{point.eta:g}" == eta]
    answer = pretrained(found, task, mechanism, here[0].eta)
    show_finding(slot, answer, "pretrained")
    slot.caption(
        legend(points[0].their_null is not None, describe_similar_adapted(task, mechanism))
    )
    st.header("Loss by tokens seen", anchor=False)
    _loss_curves(here)
    _token_table(points)
    return answer


def _token_table(points: Sequence[Adapted]) -> None:
    """Draw the table of tokens seen in each pretraining, with a download."""
    rows = [
        {
            "η": f"{point.eta:g}",
            "pretraining loss": OBJECTIVES[point.objective].title,
            "tokens seen": point.tokens,
            "with earlier η": point.all_tokens,
            "distinct": point.distinct_tokens,
            "paper: tokens": point.paper_tokens,
            "paper: η": "–" if point.paper_eta is None else f"{point.paper_eta}",
            "minutes": f"{point.minutes:.1f}",
        }
        for point in points
    ]
    with st.expander("The tokens as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-tokens", hide_index=True)
        save_csv(lambda: table_csv(rows), "tokens", about="One row per η and loss")


def _loss_curves(here: Sequence[Adapted]) -> None:
    """Draw the loss curves of the pretrainings at one η, and their table."""
    st.plotly_chart(
        loss_figure(here),
        key="training-loss",
        config=chart_config("leakscope-loss"),
        alt=f"Loss on held-out texts by tokens seen at η {here[0].eta:g}, one line for each loss. "
        "The table below has the same numbers",
    )
    st.caption(
        "Each loss has another target: the noisy token, the frequencies of noisy tokens, or the "
        "original token. A line that still falls shows that more tokens would help. Do not compare "
        "the lines' heights: a lower loss is not a better one."
    )
    rows = [
        {"pretraining loss": OBJECTIVES[p.objective].title, "tokens seen": tokens, "loss": loss}
        for p in here
        for tokens, loss in p.losses
    ]
    with st.expander("The losses as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-losses", hide_index=True)
        save_csv(lambda: table_csv(rows), "loss", about="One row per measurement")
