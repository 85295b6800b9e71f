"""Differential privacy in training: what it costs, and what it leaves of membership and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import streamlit as st

from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from core.figures.training_private import epsilon_said, exposure_figure, private_figure
from core.said import auc_said
from core.spreadsheets import table_csv
from core.studies.private_points import PrivateHead, PrivateModel, PrivateTraining, Spent
from core.tasks.names import task_said
from core.training.accounting import GROUP, PUBLIC, UNIT, delta_warning
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.story.pinning import note_figure
from dashboard.training.missing import QUESTION
from dashboard.training.state import offer

__all__ = ["show"]

AFFORDABLE = {8.0: 2.0, 1.0: 5.0}
"""Points of accuracy that an ε may cost."""

MOST_FOUND = 55
"""AUC of membership at ε = 1, of 100."""


def show(slot: Any, found: PrivateTraining) -> None:
    """Draw the part: its finding in the slot, accuracy and members found, memory, and ε."""
    if found.heads:
        task = offer("task", "Task", found.tasks, task_said, "What the texts are sorted by")
        heads = found.of(task)
        _finding(slot, found, heads)
        note_figure(
            slot,
            lambda: private_figure(heads),
            "Above, accuracy by ε; below, how well members are told from others",
        )
        _heads(heads)
    else:
        slot.title(QUESTION, anchor=False)
    if found.models:
        st.header("What a language model keeps of planted texts", anchor=False)
        _models(found.models)
    st.header("What was spent, by two accountants", anchor=False)
    _accounts(found)


def _finding(slot: Any, found: PrivateTraining, heads: Sequence[PrivateHead]) -> None:
    promised = [head for head in heads if math.isfinite(head.epsilon)]
    slot.title(_title(promised), anchor=False)
    slot.markdown(f"**{plain(task_said(heads[0].task))}**, {_head_said(_best(heads))}:")
    slot.markdown("\n".join(_lines(heads)))
    if warning := delta_warning(found.delta, heads[0].n_train):
        slot.warning(plain(warning), icon=":material/warning:")
    goals = list(_goals(promised))
    if goals:
        slot.markdown(f"**The goals**: {'; '.join(goals)}.")
    some = heads[0]
    slot.caption(
        f"Classifiers on frozen vectors, trained by DP-SGD on {some.n_train:,} texts and tested on "
        f"{some.accuracy.n:,}; δ = {found.delta:g}. The unit of ε is {UNIT}; of {GROUP} texts of "
        f"one person, or {GROUP} phrases of one sentence, it is given beside. {PUBLIC} Members: of "
        "a classifier of the same recipe on "
        f"{some.n_members:,} texts, by the strongest attack on single texts, chosen against us by "
        "that very AUC. Of the classifiers, with units between and without, the one is told that "
        f"loses least on the texts tested. {some.n_seeds} seed{'s' * (some.n_seeds != 1)}; 95 % "
        "intervals in brackets."
    )


def _best(heads: Sequence[PrivateHead]) -> PrivateHead:
    """Return one of the heads that lose least at the ε that promises most."""
    least = min(head.epsilon for head in heads)
    return max((h for h in heads if h.epsilon == least), key=lambda head: head.change.value)


def _lines(heads: Sequence[PrivateHead]) -> list[str]:
    """Return a line of Markdown for each ε of the head that the title is of."""
    own = [head for head in heads if head.hidden == _best(heads).hidden]
    return [
        f"- {_promise_said(head)}: accuracy **{head.accuracy.said()}** %"
        + ("" if math.isinf(head.epsilon) else f" ({head.change.said()} points)")
        + f", members found with an AUC of **{auc_said(head.auc)}**"
        for head in reversed(own)
    ]


def _promise_said(head: PrivateHead) -> str:
    if math.isinf(head.epsilon):
        return "No promise"
    group = head.spent and head.spent.of_group
    together = "" if group is None else f" ({group:.1f} of {GROUP} texts together)"
    return f"ε = {epsilon_said(head.epsilon)} of one text{together}"


def _goals(promised: Sequence[PrivateHead]) -> Iterator[str]:
    """Yield whether each goal was met: what a head costs by the better, members by the worse."""
    for epsilon, most in AFFORDABLE.items():
        own = [head for head in promised if head.epsilon == epsilon]
        if own:
            best = max(own, key=lambda head: head.change.value)
            met = _met(-best.change.value, -best.change.ci95.high, -best.change.ci95.low, most)
            yield f"at most {most:g} points at ε = {epsilon:g}: {met} ({_head_said(best)})"
    at_one = [head for head in promised if head.epsilon == 1.0]
    if at_one:
        worst = max(at_one, key=lambda head: (head.auc.ci95.high, head.auc.value))
        found, ends = worst.auc, worst.auc.ci95
        met = _met(100 * found.value, 100 * ends.low, 100 * ends.high, MOST_FOUND)
        yield f"an AUC of at most {MOST_FOUND:g} at ε = 1: {met} ({_head_said(worst)})"


def _met(value: float, low: float, high: float, most: float) -> str:
    """Return whether something is at most so much, by its interval."""
    if math.isnan(low) or math.isnan(high):
        return f"{'met' if value <= most else 'missed'} by the mean, without an interval"
    if high <= most:
        return "surely met"
    if low > most:
        return "surely missed"
    return f"{'met' if value <= most else 'missed'} by the mean, its interval reaches both sides"


def _title(promised: Sequence[PrivateHead]) -> str:
    if not promised:
        return QUESTION
    best = _best(promised)
    return (
        f"At ε = {epsilon_said(best.epsilon)} accuracy changes by {best.change.value:+.1f} points, "
        f"and members are found with an AUC of {100 * best.auc.value:.0f} of 100"
    ).replace("-", "−")


def _head_said(head: PrivateHead) -> str:
    return f"{head.head} head" if not head.hidden else f"head of {head.head}"


def _heads(heads: Sequence[PrivateHead]) -> None:
    st.plotly_chart(
        private_figure(heads),
        key="training-private",
        config=chart_config("leakscope-private-training"),
        alt="Above, accuracy by ε; below, how well members are told from others; the table below "
        "holds the same numbers",
    )
    st.caption(
        "Left is private. Above, up is useful; below, down is private, and on the dotted line an "
        "attacker tosses a coin. ∞ is the same training without clipping and noise."
    )
    rows = [_head_row(head) for head in heads]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-heads", hide_index=True)
        save_csv(lambda: table_csv(rows), "private-training", about="A row for each ε and head")


def _head_row(head: PrivateHead) -> dict[str, Any]:
    attacks = (CLASSIFIER_ATTACKS[name].title for name in head.strongest)
    return {
        "head": head.head,
        "ε of one text": epsilon_said(head.epsilon),
        f"ε of {GROUP} texts": _group_said(head.spent),
        "accuracy, %": head.accuracy.said(),
        "change, points": "–" if math.isinf(head.epsilon) else head.change.said(),
        "members, AUC": auc_said(head.auc),
        "dealt by lot, AUC": auc_said(head.control),
        "strongest attack": ", ".join(attacks),
        "texts trained on": head.n_train,
        "members": head.n_members,
    }


def _group_said(spent: Spent | None) -> str:
    return "–" if spent is None or spent.of_group is None else f"{spent.of_group:.1f}"


def _models(models: Sequence[PrivateModel]) -> None:
    some = models[0]
    st.markdown(
        f"{_memory_said(models)} {some.n_canaries} canaries were planted {some.insertions} times "
        f"each among {some.n_train:,} sentences. The promise of ε is of each of those texts by "
        f"itself; of a canary with all its copies less is promised{_copies_said(models)}."
    )
    st.plotly_chart(
        exposure_figure(models),
        key="training-exposure",
        config=chart_config("leakscope-private-exposure"),
        alt="Exposure of planted canaries by ε, beside canaries planted nowhere; the table below "
        "holds the same numbers",
    )
    rows = [
        {
            "ε of one text": epsilon_said(model.epsilon),
            "exposure, bits": model.exposure.said(),
            "planted nowhere, bits": model.controls.said(2),
            "bits a token, held out": f"{model.bits_a_token:.2f}",
            "ε of all copies": "–" if model.of_copies is None else f"{model.of_copies:.1f}",
        }
        for model in models
    ]
    with st.expander("Exposure as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-models", hide_index=True)
        save_csv(lambda: table_csv(rows), "private-exposure", about="A row for each ε")


def _copies_said(models: Sequence[PrivateModel]) -> str:
    told = [
        f"ε = {model.of_copies:.1f} where it is {epsilon_said(model.epsilon)} of one text"
        for model in models
        if model.of_copies is not None
    ]
    return f": {', '.join(told)}" if told else ""


def _memory_said(models: Sequence[PrivateModel]) -> str:
    before = next((model for model in models if math.isinf(model.epsilon)), None)
    after = models[0]
    if before is None or after is before:
        return f"Exposure: **{after.exposure.said()}** bits."
    return (
        f"Without a promise a planted text has an exposure of **{before.exposure.said()}** bits, "
        f"at ε = {epsilon_said(after.epsilon)} one of **{after.exposure.said()}**; planted "
        f"nowhere, {after.exposure.chance:.2f} on average."
    )


def _accounts(found: PrivateTraining) -> None:
    if math.isnan(found.apart):
        st.markdown("Nothing was trained to keep to an ε.")
        return
    st.markdown(
        "Two packages count the privacy that the same steps spent, by Rényi's divergence: they "
        f"differ by at most **{100 * found.apart:.2g} %**. The third column counts more sharply: "
        "what is promised is the first, and what was truly spent lies lower."
    )
    rows = [
        *(_spent_row(f"{head.task}, {_head_said(head)}", head.epsilon, head.spent)
          for head in found.heads if head.spent),
        *(_spent_row(f"{head.task}, {_head_said(head)}, as attacked", head.epsilon, head.attacked)
          for head in found.heads if head.attacked),
        *(_spent_row("language model", model.epsilon, model.spent)
          for model in found.models if model.spent),
    ]  # fmt: skip
    st.dataframe(rows, key="training-spent", hide_index=True)
    save_csv(lambda: table_csv(rows), "accountants", about="A row for each training")


def _spent_row(what: str, epsilon: float, spent: Spent) -> dict[str, Any]:
    return {
        "trained": what,
        "ε asked for": epsilon_said(epsilon),
        "opacus": f"{spent.opacus:.4f}",
        "dp-accounting": f"{spent.dp_accounting:.4f}",
        "privacy loss": "–" if spent.tight is None else f"{spent.tight:.4f}",
        f"of {GROUP} texts": _group_said(spent),
        "noise σ": f"{spent.noise_multiplier:.3f}",
        "steps": spent.n_steps,
    }
