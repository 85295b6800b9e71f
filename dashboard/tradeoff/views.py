"""What the page of trade-offs shows: finding, figure, a sentence under a defence, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.defences.metric_dp.promise import HARDLY, Promises, odds_said
from core.defences.metric_dp.promised import EXAMPLE, is_promising
from core.defences.registry import entry_of, make_defence
from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.specs import DefenceSpec
from core.studies.tradeoff_choice import Choice, beside_none, choose
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said
from dashboard import cache, compiling, markup
from dashboard.charts import chart_config
from dashboard.deniability.state import noise_seed
from dashboard.deniability.views import opened_sentence, privatised_card
from dashboard.inversion import answers
from dashboard.inversion.views import vector_panel
from dashboard.promise import promises_of, show_promises
from dashboard.tradeoff.controls import point_said
from dashboard.tradeoff.state import chosen_point

__all__ = [
    "all_tasks",
    "example",
    "figure_key",
    "finding",
    "picture",
    "table",
]

_MOST_ALIKE = 3
_ENOUGH = 20_000
"""Sentences from which an attacker is not called weak for what it was taught."""


def finding(slot: Any, found: Tradeoff, task: str, share: float) -> None:
    """Draw the answer to the page's question: what surely leaks less and stays surely useful."""
    choice = choose(found, task, share)
    best = choice.best
    if best is None or not choice.helps:
        slot.title("No defence here helps much", anchor=False)
        slot.markdown(_no_help(choice, task, share))
        _say_if_weak(slot, found)
        return
    saved = choice.base.leakage.value - best.leakage.value
    slot.title(f"{point_said(best)} leaks least of what stays useful", anchor=False)
    slot.markdown(
        f"The strongest attacker who knows the defence recovers words with an F1 of "
        f"**{best.leakage.said(0)}** instead of **{choice.base.leakage.said(0)}**, {saved:.0f} "
        f"points less; {task_said(task)} keeps **{best.utility[task].said(0)}** of "
        f"{choice.base.utility[task].said(0)} (95 % intervals in brackets). {_alike(choice)}"
    )
    slot.markdown(_promised_or_not(choice, share))
    if choice.promising is not None and is_promising(choice.promising.defence):
        show_promises(_promises(choice.promising), slot)
    _say_if_weak(slot, found)


def _say_if_weak(slot: Any, found: Tradeoff) -> None:
    """Say where the attacker learnt from few texts: what it does not read is not thereby safe."""
    n_texts = found.facts.get("n_auxiliary", _ENOUGH)
    if n_texts < _ENOUGH:
        slot.warning(
            f"A lower bound: the attacker of these figures learnt from {n_texts:,} sentences. The "
            "attacks of the inversion page learnt from many times as many and read more without a "
            "defence; behind one they would read more, too.",
            icon=":material/info:",
        )


def _no_help(choice: Choice, task: str, share: float) -> str:
    if choice.best is None:
        return (
            f"None of the settings measured surely keeps {share:.0%} of the usefulness for "
            f"{task_said(task)}: the lower end of each interval lies below. "
            "Ask for less, or more texts would have to be measured."
        )
    return (
        f"Of the settings that surely keep {share:.0%} of the usefulness for {task_said(task)}, "
        f"{point_said(choice.best)} leaks least: an F1 of **{choice.best.leakage.said(0)}** to the "
        f"strongest attacker, against **{choice.base.leakage.said(0)}** without a defence: "
        f"{beside_none(choice.best, choice.base)}."
    )


def _promises(point: Point, text: str = EXAMPLE) -> Promises:
    """Return what a point's η promises, for an example or for a text that was typed."""
    return promises_of(point.defence, float(dict(point.settings)["eta"]), text, answers.ENCODER)


def _promised(point: Point) -> str:
    """Return the odds that a point's η promises at best; else what is promised, in words."""
    if is_promising(point.defence):
        return _promises(point).nearest.odds
    return entry_of(point.defence).guarantee or "none"


def _alike(choice: Choice) -> str:
    """Say what cannot be told apart from the best."""
    if not choice.alike:
        return ""
    named = ", ".join(point_said(point) for point in choice.alike[:_MOST_ALIKE])
    more = len(choice.alike) - _MOST_ALIKE
    return f"Not told apart from it: {named}{f' and {more} more' if more > 0 else ''}."


def _promised_or_not(choice: Choice, share: float) -> str:
    """Say whether the best promises anything, and what the best that does comes to."""
    if choice.promising is None:
        return (
            "It promises nothing: it was measured against the attackers that were tried. No "
            f"defence that promises something surely keeps {share:.0%}."
        )
    leaks = f"an F1 of {choice.promising.leakage.said(0)}"
    if choice.best is choice.promising:
        return f"It promises something: {entry_of(choice.promising.defence).guarantee}."
    told = beside_none(choice.promising, choice.base)
    return (
        "It promises nothing: it was measured against the attackers that were tried. Of the "
        f"defences that promise something, {point_said(choice.promising)} leaks least: "
        f"{leaks}{told and f', {told}'}."
    )


def figure_key(task: str) -> str:
    """Return the key of the figure of a task."""
    return f"tradeoff-{task}"


def picture(found: Tradeoff, task: str) -> None:
    """Draw the figure; a click in it chooses a setting."""
    st.plotly_chart(
        tradeoff_figure(found, task, chosen=chosen_point()),
        key=figure_key(task),
        on_select="rerun",
        selection_mode="points",
        config=chart_config(),
        alt=f"Words recovered against usefulness for {task}, a line for each defence; the table "
        "below holds the same numbers",
    )
    st.caption("Down is private, right is useful. Click a point to see a sentence at its setting.")


def all_tasks(found: Tradeoff, share: float) -> None:
    """Draw what the headline would be for each task."""
    rows = []
    for task in found.tasks:
        choice = choose(found, task, share)
        rows.append(
            {
                "task": task_said(task),
                "plain": choice.base.utility[task].value,
                "promising": _least_said(choice.promising, choice.base),
                "measured": _least_said(choice.measured, choice.base),
            }
        )
    columns = st.column_config
    st.dataframe(
        rows,
        key="all_tasks",
        hide_index=True,
        column_config={
            "task": columns.TextColumn("Useful for", pinned=True),
            "plain": columns.NumberColumn("No defence scores", format="%.1f"),
            "promising": columns.TextColumn(
                "Leaks least of those that promise something",
                help="Words recovered by the strongest attacker, F1 [95 % interval]",
            ),
            "measured": columns.TextColumn("Leaks least of the others"),
        },
    )
    leak = found.undefended.leakage.said(0)
    st.caption(
        f"Of the settings that surely keep {share:.0%} of the usefulness, the one that surely "
        f"leaks least; without a defence the F1 is {leak}."
    )


def _least_said(point: Point | None, base: Point) -> str:
    if point is None:
        return "none keeps enough"
    told = beside_none(point, base)
    return f"{point_said(point)}: {point.leakage.said(0)}{told and f', {told}'}"


def example(point: Point, text: str) -> None:
    """Draw what a sentence becomes under a defence, and what an unprepared attacker reads."""
    encoder = cache.encoder(answers.ENCODER)
    entry = entry_of(point.defence)
    st.markdown(f"{entry.summary} {entry.guarantee and f'*{entry.guarantee}.*'}")
    if is_promising(point.defence):
        show_promises(_promises(point, text))
    with st.container(border=True):
        if is_promising(point.defence) and entry.acts_on in ("text", "tokens"):
            eta = float(dict(point.settings)["eta"])
            compiling.wait_for_loops()
            sentence = opened_sentence(text, encoder, answers.ENCODER)  # type: ignore[arg-type]
            if eta >= sentence.envelopes.eta_min and point.defence == "text_to_text":
                privatised_card(sentence, eta, answers.ENCODER)
        settings = dict(point.settings)
        if entry.takes_seed:
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
    """Draw all points as a table, by the strongest attacker; each attacker on demand."""
    shows_each = len(found.attackers) > 1 and st.toggle(
        "What each attacker reads", key="each_attacker", persist_state="session"
    )
    rows = [
        {
            "defence": entry_of(point.defence).title,
            "strength": point.label,
            "useful": round(point.utility[task].value, 1),
            "useful, 95 %": point.utility[task].ci95.said(),
            "leaks": round(point.leakage.value, 1),
            "leaks, 95 %": point.leakage.ci95.said(),
            "by": attacker_said(point.attacker),
            **(_each(point, found.attackers) if shows_each else {}),
            "promise": _promised(point),
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
            "by": columns.TextColumn("Strongest attacker"),
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


def _each(point: Point, attackers: Sequence[str]) -> dict[str, str]:
    """Return what each attacker reads, with its interval."""
    return {
        f"by: {attacker_said(name)}": point.leaks[name].said() if name in point.leaks else ""
        for name in attackers
    }
