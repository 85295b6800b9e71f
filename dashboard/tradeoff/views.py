"""What the page of trade-offs shows: finding, figure, a sentence under a defence, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.defences.metric_dp.promise import HARDLY, Promises, odds_said
from core.defences.metric_dp.promised import EXAMPLE, is_promising
from core.defences.registry import DEFENCES, make_defence
from core.figures.tradeoff import tradeoff_figure
from core.specs import DefenceSpec
from core.studies.tradeoff_summary import Point, Tradeoff
from dashboard import cache, compiling, markup
from dashboard.charts import chart_config
from dashboard.deniability.state import noise_seed
from dashboard.deniability.views import opened_sentence, privatised_card
from dashboard.inversion import answers
from dashboard.inversion.views import vector_panel
from dashboard.promise import promises_of, show_promises
from dashboard.tradeoff.state import chosen_point

__all__ = [
    "best_point",
    "example",
    "finding",
    "picture",
    "table",
]

_KEPT = 0.9
"""Of the way from chance to the undefended encoder: what the headline calls kept."""


def finding(slot: Any, found: Tradeoff, task: str) -> None:
    """Draw the answer to the page's question: the best that keeps most of the usefulness."""
    base, best = found.undefended, best_point(found, task)
    if DEFENCES[best.defence].is_baseline:
        slot.title("No defence keeps its usefulness and hides words", anchor=False)
    else:
        saved = base.leakage.value - best.leakage.value
        name = f"{DEFENCES[best.defence].title} {best.label}".strip()
        slot.title(f"{name} leaks least of what stays useful", anchor=False)
        slot.markdown(
            f"An attacker who knows the defence recovers words with an F1 of "
            f"**{best.leakage.said(0)}** instead of **{base.leakage.said(0)}**, {saved:.0f} points "
            f"less; {task} keeps **{best.utility[task].said(0)}** of {base.utility[task].said(0)} "
            f"(95 % intervals in brackets). Of {len(found.points)} settings measured, it is the "
            "one with the least leakage among those that keep "
            f"{_KEPT:.0%} of the way from chance "
            "to no defence; where intervals overlap, others do as well."
        )
        if is_promising(best.defence):
            show_promises(_promises(best), slot)
        return
    slot.markdown(
        f"Every setting that leaks less loses more than {1 - _KEPT:.0%} of the way from no defence "
        f"to chance on {task}."
    )


def _promises(point: Point, text: str = EXAMPLE) -> Promises:
    """Return what a point's η promises, for an example or for a text that was typed."""
    return promises_of(point.defence, float(dict(point.settings)["eta"]), text, answers.ENCODER)


def best_point(found: Tradeoff, task: str) -> Point:
    """Return the setting that leaks least among those that keep most of the usefulness."""
    base = found.undefended.utility[task]
    wanted = base.chance + _KEPT * (base.value - base.chance)
    keeping = [p for p in found.points if p.utility[task].value >= wanted]
    return min(keeping, key=lambda p: p.leakage.value)


def picture(found: Tradeoff, task: str) -> int | None:
    """Draw the figure and return the index of the point that was clicked, if any."""
    event = st.plotly_chart(
        tradeoff_figure(found, task, chosen=chosen_point()),
        key=f"tradeoff-{task}",
        on_select="rerun",
        selection_mode="points",
        config=chart_config(),
        alt=f"Words recovered against usefulness for {task}, a line for each defence; the table "
        "below holds the same numbers",
    )
    points = event.selection.points if event else []
    st.caption("Down is private, right is useful. Click a point to see a sentence at its setting.")
    for point in points:
        if point.get("customdata"):
            return int(point["customdata"][0])
    return None


def example(point: Point, text: str) -> None:
    """Draw what a sentence becomes under a defence, and what an unprepared attacker reads."""
    encoder = cache.encoder(answers.ENCODER)
    entry = DEFENCES[point.defence]
    st.markdown(f"{entry.summary} {entry.guarantee and f'*{entry.guarantee}.*'}")
    if is_promising(point.defence):
        show_promises(_promises(point, text))
    with st.container(border=True):
        if entry.acts_on in ("text", "tokens"):
            eta = float(dict(point.settings)["eta"])
            compiling.wait_for_loops()
            sentence = opened_sentence(text, encoder, answers.ENCODER)  # type: ignore[arg-type]
            if eta >= sentence.envelopes.eta_min and entry.acts_on == "text":
                privatised_card(sentence, eta, answers.ENCODER)
        settings = dict(point.settings)
        if "seed" in entry.kind.__dataclass_fields__:
            settings["seed"] = noise_seed() % 2**32
        protected = make_defence(DefenceSpec.of(point.defence, settings)).protect(encoder)
        vector = protected.encode([text])
        vector_panel(vector, lead="What is stored: ")
        if not entry.keeps_space:
            st.html(markup.label("The sentence") + markup.quoted(text))
            st.caption(
                "No attack here reads words from projected vectors without having learnt from "
                "such vectors; the figure's attacker has. Not knowing the matrix is no protection: "
                "it keeps distances nearly as they were, so that like texts still lie together, "
                "and some texts with their vectors are enough to learn from."
            )
            return
        cut = " (zeros for what is cut)" if vector.shape[1] < encoder.dimension else ""
        vector = np.pad(vector, ((0, 0), (0, encoder.dimension - vector.shape[1])))
        reading = answers.unprepared_reading("probe_mlc", text, vector)
        who = "What an attacker reads who was not trained for this defence"
        st.html(markup.label(who + cut))
        st.html(markup.marked_sentence(reading))
        st.html(markup.wrong_words(reading))
        st.html(markup.legend([reading]))


def table(found: Tradeoff, task: str) -> None:
    """Draw all points as a table."""
    rows = [
        {
            "defence": DEFENCES[point.defence].title,
            "strength": point.label,
            "useful": round(point.utility[task].value, 1),
            "useful, 95 %": point.utility[task].ci95.said(),
            "leaks": round(point.leakage.value, 1),
            "leaks, 95 %": point.leakage.ci95.said(),
            "promise": _promises(point).nearest.odds if is_promising(point.defence) else "none",
            "tokens back": round(point.token_inversion.value, 1) if point.token_inversion else None,
        }
        for point in found.points
    ]
    columns = st.column_config
    st.dataframe(
        rows,
        key="points",
        hide_index=True,
        column_config={
            "defence": columns.TextColumn("Defence", pinned=True),
            "strength": columns.TextColumn("Strength"),
            "useful": columns.NumberColumn(f"{task}", format="%.1f"),
            "leaks": columns.NumberColumn("Words recovered, F1", format="%.1f"),
            "promise": columns.TextColumn(
                "Promise: odds up to",
                help="By what odds the output may tell two inputs apart: a token from its nearest "
                f"neighbour, in “{EXAMPLE}”, or a text from the nearest other; “none”: nothing is "
                f"promised. Odds above {odds_said(HARDLY)} are almost no promise.",
            ),
            "tokens back": columns.NumberColumn(
                "Tokens back, %",
                format="%.1f",
                help="Where tokens are perturbed: how many of them the nearest token gives back",
            ),
        },
    )
