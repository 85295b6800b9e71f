"""A small training against an adversary, here and now, and a fresh attacker after it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.figures.training import setting_said, trap_figure
from core.spreadsheets import table_csv
from core.studies.training_points import Trial, TrialRequest
from dashboard import work
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.training import state

__all__ = ["adopt_trial", "trial"]


def adopt_trial() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(TrialRequest):
        state.restore_trial(request)


def trial() -> None:
    """Draw the choice of λ, what starts and follows the training, and what came of it."""
    weight = state.offer(
        "weight", "λ", state.WEIGHTS, lambda told: f"λ {told}",
        "How much the adversary counts in the encoder's training: with 0 it reads along, and "
        "nothing is hidden from it",
    )  # fmt: skip
    request = replace(state.USUAL, weight=float(weight))
    work.drop_others(TrialRequest, lambda other: other == request)
    found = state.trial_of(request)
    if found is None:
        offer = work.Offer(
            label="Train an adversary now",
            key="training-start",
            on_click=_start,
            failed="The training did not come to its end",
            note=f"On {request.n_defence:,} sentences that come with Leakscope, in "
            f"{request.epochs} epochs; then a fresh attacker learns from {request.n_known:,} "
            "others. It takes about a minute, beside this page, and nothing is kept on the disk.",
            again="Train again",
            is_primary=True,
            is_kept=True,
        )
        done = work.take(request, offer)
        found = state.remember_trial(request, done.result) if done else None
    if found is not None:
        _show(found)


def _start(request: TrialRequest) -> None:
    from core.studies.training_trial import try_adversary  # not before: it brings the libraries

    work.start(request, try_adversary, request)


def _show(found: Trial) -> None:
    trap, plain = found.trap, found.settings[0].strongest[1]
    st.subheader(
        f"In training words were read with a score of {trap.promised.value:.0f} of 100; "
        f"the fresh attacker reads them with {trap.read.value:.0f}",
        anchor=False,
    )
    st.markdown(
        f"The adversary in training read words with an F1 of **{trap.promised.said()}** after the "
        f"last epoch (guessing: {trap.promised.chance:.1f}){_control_said(found)}. A fresh "
        f"attacker ({found.family}), which begins with the classifier that ships, reads "
        f"**{trap.read.said()}** from the same vectors (guessing: {trap.read.chance:.1f}), and "
        f"**{plain.said()}** without a defence. On {trap.read.n} sentences that nobody was "
        "trained on here; 95 % intervals in brackets."
    )
    st.plotly_chart(
        trap_figure(found.settings, dict.fromkeys(found.settings[0].after, found.family)),
        key="training-live",
        config=chart_config("leakscope-adversary-here"),
        alt="Left, what the adversary in training read after each epoch; right, what a fresh "
        "attacker reads afterwards; the table below holds the same numbers",
    )
    rows = [
        {
            "defence": setting_said(setting),
            "when": when,
            "F1 of words": score.said(),
            "guessing": f"{score.chance:.1f}",
        }
        for setting in found.settings
        for when, score in [
            *((f"epoch {i}", score) for i, score in enumerate(setting.during, 1)),
            ("fresh, afterwards", setting.strongest[1]),
        ]
    ]
    with st.expander("What was found here as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-live-table", hide_index=True)
        save_csv(lambda: table_csv(rows), "adversary-here", about="A row for each epoch")
    st.caption(
        "Few sentences and one seed: what is measured on thousands is above, or will be. A weak "
        "adversary, which has learnt from little, promises the most."
    )


def _control_said(found: Trial) -> str:
    """Return what the same adversary reads where nothing is hidden from it."""
    control = found.settings[1]
    if control is found.trap.setting:
        return ""
    return f", and **{control.during[-1].said()}** where nothing was hidden from it (λ = 0)"
