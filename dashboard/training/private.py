"""Differentially private training: the part's finding, memorisation and privacy budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from leakscope.core.figures.training import describe_epsilon, exposure_figure
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.training import describe_head, private_training
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.training.summary import PrivacySpent, PrivateModel, PrivateTraining
from leakscope.core.tasks.names import describe_task
from leakscope.core.training.accounting import GROUP
from leakscope.dashboard.training.state import option_picker
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_finding


def show_private(slot: Any, found: PrivateTraining) -> Finding:
    """Draw the section on private training, its finding in the slot; return the finding."""
    task = ""
    if found.heads:
        task = option_picker(
            "task", "Task", found.tasks, describe_task, "What the classifier predicts from a text"
        )
    answer = private_training(found, task)
    show_finding(slot, answer, "private-training", has_warning=True)
    if found.heads:
        slot.caption(
            "Left is more private. Top: up is more useful. Bottom: down is more private, and the "
            "dotted line is a coin toss. ∞ is the same training without clipping and noise."
        )
    if found.models:
        st.header("What a language model memorises of planted texts", anchor=False)
        _draw_exposure(found.models)
    st.header("The privacy budget spent, by two accountants", anchor=False)
    _budget_table(found)
    return answer


def _draw_exposure(models: Sequence[PrivateModel]) -> None:
    """Draw the exposure of planted canaries by ε, with a table and a download."""
    some = models[0]
    st.markdown(
        f"{_describe_memory(models)} {some.n_canaries} canaries were planted {some.insertions} "
        f"times each among {some.n_train:,} sentences. ε holds for each of those texts by itself. "
        f"For all copies of a canary, the guarantee is weaker{_describe_copies(models)}."
    )
    st.plotly_chart(
        exposure_figure(models),
        key="training-exposure",
        config=chart_config("leakscope-private-exposure"),
        alt="Exposure of planted canaries by ε, and of canaries planted nowhere. The table below "
        "has the same numbers",
    )
    rows = [
        {
            "ε for one text": describe_epsilon(model.epsilon),
            "exposure, bits": model.exposure.format(),
            "planted nowhere, bits": model.controls.format(2),
            "bits per held-out token": f"{model.bits_a_token:.2f}",
            "ε for all copies": "–" if model.of_copies is None else f"{model.of_copies:.1f}",
        }
        for model in models
    ]
    with st.expander("Exposure as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-models", hide_index=True)
        save_csv(lambda: table_csv(rows), "private-exposure", about="One row per ε")


def _describe_copies(models: Sequence[PrivateModel]) -> str:
    """Describe each model's ε for all copies of a canary together; "" if none is known."""
    parts = [
        f"ε = {model.of_copies:.1f} instead of {describe_epsilon(model.epsilon)}"
        for model in models
        if model.of_copies is not None
    ]
    return f": {', '.join(parts)}" if parts else ""


def _describe_memory(models: Sequence[PrivateModel]) -> str:
    """Describe the canaries' exposure in bits, with and without differential privacy."""
    before = next((model for model in models if math.isinf(model.epsilon)), None)
    after = models[0]
    if before is None or after is before:
        return f"Exposure in bits: {after.exposure.in_text(is_bold=True)}."
    return (
        "Exposure in bits: without a guarantee, a planted text has "
        f"{before.exposure.in_text(is_bold=True)}; at ε = {describe_epsilon(after.epsilon)}, it "
        f"has {after.exposure.in_text(is_bold=True)}. A text planted nowhere has "
        f"{after.exposure.chance:.2f} on average."
    )


def _budget_table(found: PrivateTraining) -> None:
    """Draw the table of the ε that each training spent, by two accountants."""
    if math.isnan(found.accountant_gap):
        st.markdown("No model was trained with an ε.")
        return
    st.markdown(
        "Two packages compute the ε that the same steps spent, by Rényi divergence. They differ "
        f"by at most **{100 * found.accountant_gap:.2g} %**. The guaranteed ε is that of *opacus*. "
        "*Privacy loss* is a tighter upper bound, so the training spent less than it guarantees."
    )
    rows = [
        *(
            _spent_row(f"{head.task}, {describe_head(head)}", head.epsilon, head.spent)
            for head in found.heads
            if head.spent
        ),
        *(
            _spent_row(
                f"{head.task}, {describe_head(head)}, as attacked", head.epsilon, head.attacked
            )
            for head in found.heads
            if head.attacked
        ),
        *(
            _spent_row("language model", model.epsilon, model.spent)
            for model in found.models
            if model.spent
        ),
    ]
    st.dataframe(rows, key="training-spent", hide_index=True)
    save_csv(lambda: table_csv(rows), "accountants", about="One row per training")


def _spent_row(what: str, epsilon: float, spent: PrivacySpent) -> dict[str, Any]:
    """Return the ε that a training spent, by each accountant, as a table row (dict)."""
    return {
        "trained": what,
        "requested ε": describe_epsilon(epsilon),
        "opacus": f"{spent.opacus:.4f}",
        "dp-accounting": f"{spent.dp_accounting:.4f}",
        "privacy loss": "–" if spent.tight is None else f"{spent.tight:.4f}",
        f"for {GROUP} texts": f"{spent.of_group:.1f}",
        "noise σ": f"{spent.noise_multiplier:.3f}",
        "steps": spent.n_steps,
    }
