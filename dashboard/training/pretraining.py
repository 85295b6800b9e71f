"""Pretraining under noise (Tables 6 and 7): what it wins back, and its loss by tokens seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.defences.registry import DEFENCES
from core.defences.trained.under_noise.registry import OBJECTIVES
from core.figures.training_noise import adapted_figure, loss_figure
from core.spreadsheets import table_csv
from core.studies.in_order import ENOUGH, goal_said, order_said
from core.studies.odds import ODDS
from core.studies.privacy_paper import adapted_alike
from core.studies.training_points import Adapted, Pretrained
from core.tasks.names import task_said
from dashboard.calm import plain
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.story.pinning import note_figure
from dashboard.tradeoff.promised import odds_sentence
from dashboard.training.noise import PAPER, beside, odds_at
from dashboard.training.state import offer

__all__ = ["show"]


def show(slot: Any, found: Pretrained) -> None:
    """Draw the part: its finding in the slot, accuracy by η, the loss by tokens, and numbers."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        task = offer("task", "Task", found.tasks, task_said, "What the texts are sorted by")
        mechanism = offer(
            "sends", "Users send", found.mechanisms_of(task), lambda name: DEFENCES[name].title,
            "What the network is pretrained, fine-tuned and tested on",
        )  # fmt: skip
        etas = [f"{eta:g}" for eta in sorted({p.eta for p in found.of(task, mechanism)})]
        eta = offer(
            "eta", "η", etas, lambda eta: f"η {eta}",
            "Of the sentence at the top and of the loss by tokens: less is more noise",
        )  # fmt: skip
    points = found.of(task, mechanism)
    here = [point for point in points if f"{point.eta:g}" == eta]
    _finding(slot, here)
    alt = "Accuracy by η for each loss of pretraining under noise, beside none, and without noise"
    note_figure(slot, lambda: adapted_figure(points), alt)
    st.plotly_chart(
        adapted_figure(points),
        key="training-adapted",
        config=chart_config("leakscope-pretrained"),
        alt=f"{alt}; the table below holds the same numbers",
    )
    st.caption(
        "Left is private, up is useful. Filled: measured here, with 95 % intervals. "
        + (PAPER if points[0].their_null is not None else beside(adapted_alike(task, mechanism)))
    )
    _table(points)
    st.header("Loss by tokens seen", anchor=False)
    _loss(here)


def _finding(slot: Any, here: Sequence[Adapted]) -> None:
    best = next((p for p in here if p.objective == "denoising"), here[0])
    title, share = OBJECTIVES[best.objective].title, best.won_back
    slot.title(_title(best), anchor=False)
    told = [
        f"{plain(task_said(best.task))}, {DEFENCES[best.mechanism].title.lower()} at η "
        f"{best.eta:g}: without noise **{best.null.said()}** %, under noise "
        f"**{best.plain.said()}** %, and after pretraining under noise ({title}) "
        f"**{best.accuracy.said()}** %: {best.gain.said()} points more."
    ]
    if not math.isnan(share.value):
        told.append(
            f"It wins back **{share.said(0)}** % of what the noise costs; {goal_said(share)}."
        )
    if best.they_won_back is not None:
        told.append(f"The paper's figures, at its η {best.paper_eta}, come to "
                    f"{best.they_won_back:.0f} %.")  # fmt: skip
    others = [p for p in here if p.objective != best.objective]
    if others:
        named = "; ".join(f"{OBJECTIVES[p.objective].title} {p.accuracy.said()}" for p in others)
        told.append(f"By the other losses: {named}.")
        order = order_said({p.objective: p.accuracy for p in here},
                           {p.objective: p.beside for p in here})  # fmt: skip
        told.append(f"On the same texts, {order}.")
    told.append(odds_sentence(best.mechanism, [best.eta], best.releases))
    slot.markdown(" ".join(filter(None, told)))
    slot.caption(
        f"**A subset**: pretrained on {best.tokens:,} tokens at this η, {best.all_tokens:,} with "
        f"those of the η that it goes on from, {best.distinct_tokens:,} of them of texts not seen "
        f"before; the paper's saw {best.paper_tokens:,}, "
        f"{best.paper_tokens / max(1, best.all_tokens):,.0f} times as many. Fine-tuned on "
        f"{best.n_train:,} texts and tested on {best.accuracy.n:,}; {best.n_seeds} "
        f"seed{'s' * (best.n_seeds != 1)} of fine-tuning, one of pretraining. 95 % intervals in "
        "brackets."
    )  # fmt: skip


def _title(best: Adapted) -> str:
    gain, share = best.gain, best.won_back
    if gain.ci95.low > 0 and not math.isnan(share.value):
        return f"Pretraining under noise wins back {share.value:.0f} % of what the noise costs"
    if gain.ci95.low > 0:
        return f"Pretraining under noise wins {gain.value:.1f} points"
    if gain.ci95.high <= 0:
        return "Pretraining under noise wins nothing back here"
    if share.ci95.high < ENOUGH:
        return "Pretraining under noise wins back less than half of what noise costs, if anything"
    return "Whether pretraining under noise wins anything back is not told here"


def _table(points: Sequence[Adapted]) -> None:
    rows = [_row(point) for point in points]
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-adapted-table", hide_index=True)
        save_csv(lambda: table_csv(rows), "pretrained", about="A row for each η and loss")


def _row(point: Adapted) -> dict[str, Any]:
    theirs = (point.their_plain, point.theirs, point.they_won_back)
    plain_, adapted, won = ("–" if each is None else f"{each:.1f}" for each in theirs)
    return {
        "η": f"{point.eta:g}",
        "releases of a text": point.releases,
        ODDS.lower(): odds_at(point.mechanism, point.eta, point.releases),
        "pretrained by": OBJECTIVES[point.objective].title,
        "accuracy, %": point.accuracy.said(),
        "not pretrained, %": point.plain.said(),
        "without noise, %": point.null.said(),
        "gain, points": point.gain.said(),
        "won back, %": point.won_back.said(0),
        "tokens seen": point.tokens,
        "with neighbours": point.all_tokens,
        "of these distinct": point.distinct_tokens,
        "the paper's tokens": point.paper_tokens,
        "minutes": f"{point.minutes:.1f}",
        "the paper's η": "–" if point.paper_eta is None else f"{point.paper_eta}",
        "the paper's, not pretrained": plain_,
        "the paper's": adapted,
        "the paper's won back, %": won,
    }


def _loss(here: Sequence[Adapted]) -> None:
    st.plotly_chart(
        loss_figure(here),
        key="training-loss",
        config=chart_config("leakscope-loss"),
        alt=f"Loss on held-out texts by tokens seen at η {here[0].eta:g}, a line for each loss; "
        "the table below holds the same numbers",
    )
    st.caption(
        "Each loss predicts something else: the token that the noise left, how often each comes, "
        "or the token as it was. Whether a line still falls says whether more tokens would help; "
        "which of them is lower does not say which is better."
    )
    rows = [
        {"pretrained by": OBJECTIVES[p.objective].title, "tokens seen": tokens, "loss": loss}
        for p in here
        for tokens, loss in p.losses
    ]
    with st.expander("The losses as a table", icon=":material/table:"):
        st.dataframe(rows, key="training-losses", hide_index=True)
        save_csv(lambda: table_csv(rows), "loss", about="A row for each time it was taken")
