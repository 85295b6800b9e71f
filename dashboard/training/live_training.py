"""A small adversarial training as a job, followed by a new attacker."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from leakscope.core.figures.training import describe_setting, trap_figure
from leakscope.core.findings.training import describe_effect
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.training.summary import Trial, TrialRequest
from leakscope.dashboard.training import state
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv


def adopt_trial() -> None:
    """Restore λ and the page's section from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(TrialRequest):
        st.session_state[state.key_of("weight")] = f"{request.weight:g}"
        st.session_state[state.key_of("part")] = "adversary"


def trial_card() -> None:
    """Draw the selector of λ, the controls of the training job, and its result."""
    weight = state.option_picker(
        "weight",
        "λ",
        state.WEIGHTS,
        lambda weight: f"λ {weight}",
        "The weight on hiding words from the attacker used in training; with 0, training hides "
        "nothing.",
    )
    request = replace(state.USUAL, weight=float(weight))
    work.drop_others(TrialRequest, lambda other: other == request)
    found = state.trial_of(request)
    if found is None:
        offer = work.Offer(
            label="Train against an attacker now",
            key="training-start",
            on_click=_start,
            failed="The training failed",
            note=f"Trains for {request.epochs} epochs on {request.n_defence:,} bundled sentences. "
            f"Then a new attacker is trained on {request.n_known:,} others. It takes about a "
            "minute in the background. Nothing is written to disk.",
            restart_label="Train again",
            is_primary=True,
            keeps_result=True,
        )
        done = work.draw_job(request, offer)
        found = state.remember_trial(request, done.result) if done else None
    if found is not None:
        _show(found)


def _start(request: TrialRequest) -> None:
    """Start the background job of a request's adversarial training."""
    from leakscope.core.studies.training.trial import (
        try_adversary,  # imports heavy libraries
    )

    work.start(request, try_adversary, request)


def _show(found: Trial) -> None:
    """Draw what two attackers recovered: that used in training, and the new one afterwards."""
    trap, plain = found.trap, found.settings[0].strongest[1]
    st.subheader(describe_effect(trap, found.settings[0]), anchor=False)
    st.markdown(
        "The scores are F1 of the recovered words, with the 95 % CI in brackets. The attacker used "
        "in training reached "
        f"**{trap.promised.format()}** after the last epoch (guessing: {trap.promised.chance:.1f})"
        f"{_describe_control(found)}. A new attacker ({found.family}), tuned from shipped "
        f"weights, reaches **{trap.read.format()}** on vectors of the finished encoder (guessing: "
        f"{trap.read.chance:.1f}), and **{plain.format()}** without a defence. Its "
        f"{trap.read.n} target sentences were not used in any training here."
    )
    st.plotly_chart(
        trap_figure(found.settings, dict.fromkeys(found.settings[0].after, found.family)),
        key="training-live",
        config=chart_config("leakscope-adversary-here"),
        alt="Left: the score of the attacker used in training after each epoch. Right: the score "
        "of a new attacker afterwards. The table below has the same numbers",
    )
    rows = [
        {
            "defence": describe_setting(setting),
            "when": when,
            "F1 of words": score.format(),
            "guessing": f"{score.chance:.1f}",
        }
        for setting in found.settings
        for when, score in [
            *((f"epoch {i}", score) for i, score in enumerate(setting.during, 1)),
            ("new attacker, afterwards", setting.strongest[1]),
        ]
    ]
    with st.expander("These results as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-live-table", hide_index=True)
        save_csv(lambda: table_csv(rows), "adversary-here", about="One row per epoch")
    st.caption(
        "This run uses few sentences and one seed; the study above uses thousands. If the attacker "
        "used in training is trained on little, the defence looks strongest."
    )


def _describe_control(found: Trial) -> str:
    """Describe the control's score (trained with λ = 0); "" if that is the shown setting."""
    control = found.settings[1]
    if control is found.trap.setting:
        return ""
    return f", and **{control.during[-1].format()}** where nothing was hidden from it (λ = 0)"
