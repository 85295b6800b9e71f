"""Pretraining under noise (Tables 6 and 7): the part's controls, finding and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.trained.under_noise.registry import OBJECTIVES
from leakscope.core.figures.training_noise import loss_figure
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.training import pretrained
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.training.points import Adapted, Pretrained
from leakscope.core.studies.training.privacy_paper import describe_similar_adapted
from leakscope.core.tasks.names import describe_task
from leakscope.dashboard.training.noise import legend
from leakscope.dashboard.training.state import option_picker
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_finding


def show_pretraining(slot: Any, found: Pretrained) -> Finding:
    """Draw the part, with its finding in the slot; return the finding."""
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
    """Draw the table of tokens seen in each pretraining."""
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
    """Draw the loss curves at an η, and their table."""
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
