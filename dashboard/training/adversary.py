"""Adversarial training: the part's controls, finding and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from leakscope.core.figures.representations import encoder_title
from leakscope.core.figures.training import describe_setting
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.training import adversary_trap
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.training.adversarial_tables import (
    AFFORDABLE,
    Setting,
    Verdict,
)
from leakscope.core.studies.training.summary import Adversarial
from leakscope.dashboard.training.missing import command_of
from leakscope.dashboard.training.state import option_picker
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.finding import show_finding

_HIDES = {"words": "Words", "attribute": "An attribute"}


def show_adversarial(slot: Any, found: Adversarial) -> Finding:
    """Draw the section on adversarial training, its finding in the slot; return the finding."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        encoder = option_picker(
            "encoder",
            "Encoder",
            found.encoders,
            encoder_title,
            "The encoder whose vectors hide something. Dual encoders are trained against an "
            "attacker from the first step. For other encoders, a small network changes the "
            "vectors.",
        )
        hides = option_picker(
            "hides",
            "What is hidden",
            found.hidden_of(encoder),
            _HIDES.__getitem__,
            f"The words of a text, or its {found.label}.",
        )
    settings, basis = found.of(encoder, hides), found.bases.get((encoder, hides))
    answer = adversary_trap(found, encoder, hides)
    show_finding(slot, answer, "adversary", below=st.container(), n_open=1)
    slot.caption(_explain_marks(settings))
    _more_tables(found, settings)
    if len(found.verdicts) > 1:
        title = "Was leakage halved at a cost of at most two points of utility?"
        with st.expander(title, icon=":material/balance:"):
            _verdict_table(found)
    return replace(answer, commands=(command_of("adversary", basis.table),)) if basis else answer


def _explain_marks(settings: Sequence[Setting]) -> str:
    """Explain in sentences the marks of the figure of these settings; "" without settings."""
    if not settings:
        return ""
    has_words = settings[0].hides == "words"
    words = (
        " The two are scored on different words: the ring on those that the attacker used in "
        "training can name, the circle on those that every new attacker can name."
        if has_words
        else ""
    )
    return (
        f"{settings[0].symbol} is the weight on hiding the {'words' if has_words else 'attribute'} "
        "in training; with 0, training hides nothing. The grey ring is the score of the attacker "
        "used in training, after the last epoch. The filled circle is the strongest new attacker, "
        f"with its 95 % CI.{words} The bar from ring to circle shows roughly what a test during "
        "training overlooks. Compare each score with the dotted line, which is guessing."
    )


def _more_tables(found: Adversarial, settings: Sequence[Setting]) -> None:
    """Draw the tables of settings (utility by task) and of leakage by epoch, with downloads."""
    rows = [_task_row(found, setting) for setting in settings if not setting.stopped]
    with st.expander("By task and by epoch", icon=":material/table:"):
        st.dataframe(rows, key="training-tasks", hide_index=True)
        save_csv(lambda: table_csv(rows), "adversary-tasks", about="One row per setting")
        epochs = _epoch_rows(settings)
        if epochs:
            st.markdown("**In training, by epoch**")
            st.dataframe(epochs, key="training-epochs", hide_index=True)
            save_csv(lambda: table_csv(epochs), "adversary-epochs", about="One row per epoch")


def _task_row(found: Adversarial, setting: Setting) -> dict[str, Any]:
    """Return a setting's leakage and change in utility by task, as a table row (dict)."""
    row: dict[str, Any] = {"defence": describe_setting(setting)}
    for name, score in setting.after_top5.items():
        row[f"new attacker: {found.families.get(name, name)}, top 5"] = score.format()
    for task, change in setting.changes.items():
        row[f"{'change in utility' if task == 'mean' else task}, points"] = change.format()
    row["minutes of training"] = f"{setting.minutes:.2f}"
    return row


def _epoch_rows(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Return one table row (dict) per epoch, with each setting's leakage during training."""
    trained = [setting for setting in settings if setting.during]
    n = max((len(setting.during) for setting in trained), default=0)
    return [
        {
            "epoch": i + 1,
            **{describe_setting(s): s.during[i].format() for s in trained if i < len(s.during)},
        }
        for i in range(n)
    ]


def _verdict_table(found: Adversarial) -> None:
    """Draw the table that says for each encoder whether its best setting met the goal."""
    rows = [
        {
            "encoder": encoder_title(verdict.plain.encoder),
            "hidden": verdict.plain.hides,
            "without a defence": verdict.plain.strongest[1].format(),
            "goal": _describe_goal(verdict),
            **_best_setting(verdict),
        }
        for verdict in found.verdicts
    ]
    st.dataframe(rows, key="training-verdicts", hide_index=True)
    save_csv(lambda: table_csv(rows), "adversary-goal", about="One row per encoder")
    st.caption(
        "λ_w is the weight on hiding words, λ_s on hiding an attribute. Scores are those of the "
        "strongest new attacker, as F1 of words or as per cent correct. Utility is the accuracy of "
        "logistic regression, averaged over the tasks. The goal is met only if even the worst "
        "values within the intervals meet it. It is open if the intervals do not decide. The best "
        "setting is one that meets the goal or may meet it. If no setting does, the best setting "
        "is the one with the lowest score of those shown to cost at most "
        f"{AFFORDABLE:g} points, or “none” if no cost was shown to be that low."
    )


def _describe_goal(verdict: Verdict) -> str:
    """Return "met", "not met" or "open: may be met" for an encoder's verdict."""
    if verdict.met is not None:
        return "met"
    return "not met" if verdict.unclear is None else "open: may be met"


def _best_setting(verdict: Verdict) -> dict[str, str]:
    """Return the best setting's leakage, whether that is less, and its cost, by column."""
    setting = verdict.met or verdict.unclear or verdict.best
    values = ["none", "–", "–", "–", "–"]
    if setting is not None:
        score = setting.strongest[1]
        is_less = score.ci95.high < verdict.plain.strongest[1].ci95.low
        losses = [f"{task}: {change.format()}" for task, change in setting.costly_tasks.items()]
        values = [
            describe_setting(setting),
            score.format(),
            "yes" if is_less else "no",
            setting.changes["mean"].format(),
            ", ".join(losses) or "–",
        ]
    names = (
        "best setting",
        "its score",
        "significantly less",
        "change in utility, points",
        f"tasks that significantly lose over {AFFORDABLE:g} points",
    )
    return dict(zip(names, values, strict=True))
