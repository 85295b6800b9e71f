"""The parts of the trade-off page."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from core.defences.registry import DEFENCES, make_defence
from core.figures.tradeoff import tradeoff_figure
from core.specs import DefenceSpec
from core.studies.tradeoff_summary import Point, Tradeoff
from dashboard import cache, compiling, markup
from dashboard.deniability import state as defence_state
from dashboard.deniability import views as deniable
from dashboard.inversion import answers
from dashboard.inversion import views as panels

__all__ = [
    "best_point",
    "caveats",
    "example",
    "finding",
    "how_measured",
    "picture",
    "setting_picker",
    "table",
    "task_picker",
]

_KEPT = 0.9
"""Of the way from chance to the undefended encoder: what the headline calls kept."""


def task_picker(found: Tradeoff) -> str:
    """Draw the choice of the task and return it."""
    return str(
        st.segmented_control(
            "Useful for",
            found.tasks,
            key=defence_state.TASK_KEY,
            required=True,
            persist_state="session",
            help="What the protected vectors are used for: sorting texts into classes by a linear "
            "classifier, or judging the similarity of two sentences (STS-b)",
        )
    )


def finding(slot: Any, found: Tradeoff, task: str) -> None:
    """Draw the answer to the page's question: the best that keeps most of the usefulness."""
    base, best = found.undefended, best_point(found, task)
    if best.defence == "none":
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
        return
    slot.markdown(
        f"Every setting that leaks less loses more than {1 - _KEPT:.0%} of the way from no defence "
        f"to chance on {task}."
    )


def best_point(found: Tradeoff, task: str) -> Point:
    """Return the setting that leaks least among those that keep most of the usefulness."""
    base = found.undefended.utility[task]
    wanted = base.chance + _KEPT * (base.value - base.chance)
    keeping = [p for p in found.points if p.utility[task].value >= wanted]
    return min(keeping, key=lambda p: p.leakage.value)


def picture(found: Tradeoff, task: str) -> int | None:
    """Draw the figure and return the index of the point that was clicked, if any."""
    event = st.plotly_chart(
        tradeoff_figure(found, task, chosen=defence_state.chosen_point()),
        key=f"tradeoff-{task}",
        on_select="rerun",
        selection_mode="points",
        config={"displaylogo": False, "displayModeBar": "hover",
                "toImageButtonOptions": {"format": "svg", "filename": "leakscope"}},
        alt=f"Words recovered against usefulness for {task}, a line for each defence; the table "
        "below holds the same numbers",
    )  # fmt: skip
    points = event.selection.points if event else []
    st.caption("Down is private, right is useful. Click a point to see a sentence at its setting.")
    for point in points:
        if point.get("customdata"):
            return int(point["customdata"][0])
    return None


def setting_picker(found: Tradeoff, clicked: int | None) -> int:
    """Draw the choice of a setting, which a click in the figure makes as well."""
    defence_state.adopt_click(clicked)
    return int(
        st.selectbox(
            "Defence",
            range(len(found.points)),
            key=defence_state.POINT_KEY,
            format_func=lambda i: _name(found.points[i]),
            help="The same as clicking a point in the figure",
        )
    )


def _name(point: Point) -> str:
    title = DEFENCES[point.defence].title
    return f"{title}, {point.label}" if point.label else title


def example(point: Point, text: str) -> None:
    """Draw what a sentence becomes under a defence, and what an unprepared attacker reads."""
    encoder = cache.encoder(answers.ENCODER)
    entry = DEFENCES[point.defence]
    st.markdown(f"{entry.summary} {entry.guarantee and f'*{entry.guarantee}.*'}")
    with st.container(border=True):
        if entry.acts_on in ("text", "tokens"):
            eta = float(dict(point.settings)["eta"])
            compiling.wait_for_loops()
            sentence = deniable.opened_sentence(text, encoder, answers.ENCODER)  # type: ignore[arg-type]
            if eta >= sentence.envelopes.eta_min and entry.acts_on == "text":
                deniable.privatised_card(sentence, eta, answers.ENCODER)
        settings = dict(point.settings)
        if "seed" in entry.kind.__dataclass_fields__:
            settings["seed"] = defence_state.noise_seed() % 2**32
        protected = make_defence(DefenceSpec.of(point.defence, settings)).protect(encoder)
        vector = protected.encode([text])
        panels.vector_panel(vector, lead="What is stored: ")
        if point.defence == "random_projection":
            st.html(markup.quoted(text))
            st.caption(
                "An attacker who does not know the projection can do nothing with its numbers. "
                "The figure's attacker was trained on projected vectors."
            )
            return
        vector = np.pad(vector, ((0, 0), (0, encoder.dimension - vector.shape[1])))
        reading = answers.unprepared_reading("probe_mlc", text, vector)
        who = "What an attacker reads who was not trained for this defence"
        cut = " (zeros for what is cut)" if point.defence == "truncation" else ""
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
            "tokens back": columns.NumberColumn(
                "Tokens back, %", format="%.1f", help="Where tokens are perturbed: how many of "
                "them the nearest token gives back"
            ),
        },
    )  # fmt: skip


def how_measured(found: Tradeoff) -> None:
    """Draw on what the figure rests."""
    facts, base = found.facts, found.undefended
    tests = next(iter(base.utility.values()))
    with st.expander("How this was measured", icon=":material/function:"):
        st.markdown(
            f"- **Useful**: the encoder stays as it is. A linear (ridge) classifier is trained on "
            f"the protected vectors of {facts['n_train']:,} texts and tested on "
            f"{facts['n_test']:,} others, a random subset of each task, under "
            f"{tests.n_seeds} seeds. STS-b: Spearman's correlation of the cosine with human "
            f"scores on {facts['n_test']:,} pairs.\n"
            f"- **Leaks**: the probe-started classifier, trained anew *on protected vectors* of "
            f"{facts['n_auxiliary']:,} sentences, attacks {facts['n_targets']:,} others. It knows "
            "the defence, and the encoder. With so few sentences it reads less than the attacks "
            "of the other pages; between defences the comparison is fair.\n"
            "- **Intervals**: 95 %, of the mean over seeds: the greater of the error within a seed "
            "and the spread between seeds.\n"
            "- Dotted: the most frequent class, and an attacker who never sees the vector."
        )


def caveats(found: Tradeoff) -> None:
    """Draw what the figure does not say."""
    del found
    with st.expander("What this does not show", icon=":material/info:"):
        st.markdown(
            "- A point that leaks little *to this attacker* may leak more to a better one. Only "
            "the d_χ mechanisms promise anything, and what they promise is a ratio per distance, "
            "not a score.\n"
            "- The classifier is linear and the encoder frozen. An encoder that is trained on "
            "privatised text can win some usefulness back.\n"
            "- One encoder, English, short texts."
        )
