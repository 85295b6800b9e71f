"""The figure and the tables of the page of trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.attacks.inversion.export import table_csv
from core.defences.metric_dp.promise import HARDLY, odds_said
from core.defences.metric_dp.promised import EXAMPLE
from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.said import leak_said, percent_said
from core.specs import DefenceSpec
from core.studies.odds import ODDS
from core.studies.tradeoff_choice import Choice, attacked, beside_none, choose, leak_of, reads_of
from core.studies.tradeoff_frontier import frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import told_of
from core.studies.tradeoff_setting import entry_shown, milliseconds_said, minutes_said
from core.studies.tradeoff_summary import Point, Tradeoff
from core.tasks.names import task_said
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.tradeoff import state
from dashboard.tradeoff.controls import point_said
from dashboard.tradeoff.finding import missing_said, read_said
from dashboard.tradeoff.promised import odds_promised

_MEASURE_ALL = (
    "python -m core study tradeoff --spec docs/presets/tradeoff-all.spec.json --files DATA "
    "--jobs 2 --out tradeoff-all.json"
)
_ODDS_OF = "a token from its nearest neighbour · a median pair of tokens · a whole sentence"

__all__ = ["all_tasks", "figure_key", "picture", "shipped_beside", "table"]


def figure_key(task: str, reads: str, most: float | None = None) -> str:
    """Return the key of the figure of a task: another where other points are drawn."""
    parts = [reads] * (reads != "words") + ([] if most is None else [f"{most:g}ms"])
    return "-".join(["tradeoff", task, *parts])


def picture(
    found: Tradeoff,
    left: Tradeoff,
    task: str,
    reads: str,
    most: float | None = None,
) -> None:
    """Draw the figure; a click in it chooses a setting.

    Parameters
    ----------
    left : Tradeoff
        What a limit of time leaves of `found`.
    most : float, optional
        Milliseconds a text that a setting may take: those that were not timed are hollow.
    """
    edge = frontier(left, task, reads)
    best = ", ".join(point_said(point) for point in edge.members)
    st.plotly_chart(
        tradeoff_figure(
            left,
            task,
            reads=reads,
            chosen=state.shown_places(left),
            edge=edge,
            is_timed=most is not None,
        ),
        key=figure_key(task, reads, most),
        on_select="rerun",
        selection_mode="points",
        config=chart_config(),
        alt=f"{READS[reads]} against usefulness for {task_said(task)}, a line for each defence; "
        f"no setting surely beats {best}; the table below holds the same numbers",
    )
    left_out = len(left.points) - len(attacked(left, task, reads))
    st.caption(
        "Down is private, right is useful. Click a point to see a sentence at its setting. "
        f"{_rings_said(left)}"
        "Dashed: the least that some setting surely leaks, at each usefulness; below it, in the "
        "band, lies the best of these settings, where all intervals hold."
        + (f" {left_out} settings were not measured for this." if left_out else "")
    )
    if missing := missing_said(found):
        st.caption(f"{missing} This measures all of it: `{_MEASURE_ALL}`")


def _rings_said(found: Tradeoff) -> str:
    """Return which settings the letters in the figure ring."""
    places = state.shown_places(found)
    told = [f"**{side}** is {point_said(found.points[place])}" for side, place in places.items()]
    below = "the settings that are set side by side on your sentence below"
    return f"The rings are {below}: {', '.join(told)}. " if told else ""


def shipped_beside(found: Tradeoff, task: str, reads: str) -> None:
    """Draw the shipped rows below rows of the visitor's own, as far as both know the task."""
    st.header("Beside them, the rows that ship", anchor=False)
    if task not in found.tasks:
        st.caption(f"The rows that ship are not of {task_said(task)}.")
        return
    reads = reads if reads in reads_of(found) else "words"
    st.plotly_chart(
        tradeoff_figure(found, task, reads=reads, edge=frontier(found, task, reads)),
        key=f"shipped-{figure_key(task, reads)}",
        config=chart_config(),
        alt=f"{READS[reads]} against usefulness for {task_said(task)}, of the rows that ship",
    )


def all_tasks(found: Tradeoff, share: float, reads: str) -> None:
    """Draw what the headline would be for each task."""
    rows = []
    for task in found.tasks:
        choice = choose(found, task, share, reads)
        rows.append(
            {
                "task": task_said(task),
                "plain": choice.base.utility[task].value,
                "promising": _least_said(choice.promising, choice),
                "odds": "–"
                if (point := choice.promising) is None
                else odds_promised(DefenceSpec.of(point.defence, dict(point.settings))),
                "measured": _least_said(choice.measured, choice),
            }
        )
    columns = st.column_config
    st.dataframe(
        rows,
        key="all_tasks",
        hide_index=True,
        column_config={
            "task": columns.TextColumn("Useful for"),
            "plain": columns.NumberColumn("No defence scores", format="%.1f"),
            "promising": columns.TextColumn(
                "Leaks least of those that promise something",
                help=f"To the strongest attacker: {READS[reads]} [95 % interval]",
            ),
            "odds": columns.TextColumn(
                "It promises, odds up to", help=f"{_ODDS_OF}, in “{EXAMPLE}”"
            ),
            "measured": columns.TextColumn("Leaks least of the others"),
        },
    )
    st.caption(
        f"Of the settings that surely keep {percent_said(share)} of the usefulness, the one that "
        "surely leaks least; without a defence: "
        f"{read_said(leak_of(found.undefended, reads), reads)}. "
        f"Odds: {_ODDS_OF}; of texts as a whole, the first two."
    )


def _least_said(point: Point | None, choice: Choice) -> str:
    if point is None:
        return "none keeps enough"
    told = beside_none(point, choice.base, choice.reads)
    leak = choice.leak(point)
    read = leak_said(leak) if choice.reads == "words" else leak.said(0)
    if told:
        return f"none surely less; nearest {point_said(point)}: {read}, {told}"
    return f"{point_said(point)}: {read}"


def table(found: Tradeoff, task: str, reads: str) -> None:
    """Draw all points as a table, by the strongest attacker; each attacker on demand."""
    points = attacked(found, task, reads)
    attackers = list(dict.fromkeys(name for point in points for name in point.read_by(reads)))
    shows_each = len(attackers) > 1 and st.toggle(
        "What each attacker reads",
        key="each_attacker",
        persist_state="session",
        help="Adds a column for each; the strongest one counts",
    )
    edge = {id(point) for point in frontier(found, task, reads).members}
    tells_all = reads == "words" and any(point.all_words for point in points)
    rows = [
        {
            **_row(point, task, reads),
            **({"of all words": _of_all_words(point)} if tells_all else {}),
            "unbeaten": id(point) in edge,
            **(_each(point, attackers, reads) if shows_each else {}),
        }
        for point in points
    ]
    save_csv(
        lambda: table_csv(rows),
        "tradeoff",
        about="Every setting that is shown, a row each",
    )
    columns = st.column_config
    st.dataframe(
        rows,
        key="points",
        hide_index=True,
        column_config={
            "defence": columns.TextColumn("Defence"),
            "strength": columns.TextColumn("Strength"),
            "useful": columns.NumberColumn(f"Useful for {task_said(task)}", format="%.1f"),
            "leaks": columns.NumberColumn(_capital(READS[reads]), format="%.1f"),
            "by": columns.TextColumn("Strongest attacker"),
            "needs": columns.TextColumn(
                "Which needs", help="Beside what is released, and to know the defence"
            ),
            "n": columns.NumberColumn(
                "n", help="Texts that it attacked, those of all seeds together where they differ"
            ),
            "seeds": columns.NumberColumn(
                "Seeds", help="Runs that the figures are a mean of, each with texts of its own"
            ),
            "of all words": columns.NumberColumn(
                "Of all words, F1",
                format="%.1f",
                help="The same attacker, and words that it cannot name count as missed",
            ),
            "promise": columns.TextColumn(
                ODDS,
                help=f"By what odds the output may tell two inputs apart: {_ODDS_OF}, in "
                f"“{EXAMPLE}”, or of texts as a whole the first two; “none”: nothing is promised. "
                f"Odds above {odds_said(HARDLY)} are almost no promise.",
            ),
            "tokens back": columns.NumberColumn(
                "Tokens back, %",
                format="%.1f",
                help="Where tokens are perturbed: how many of them the nearest token gives back",
            ),
            "training": columns.TextColumn(
                "Training", help="Of the defence itself, on the machine that measured it"
            ),
            "a text": columns.TextColumn(
                "A text takes", help="Encoder and defence, on the machine that measured it"
            ),
            "unbeaten": columns.CheckboxColumn(
                "Not surely beaten",
                help="No other, at the worse ends of its intervals, is as useful as this one at "
                "the better ends and leaks no more",
            ),
        },
    )


def _row(point: Point, task: str, reads: str) -> dict[str, Any]:
    strongest = point.strongest(reads)
    assert strongest is not None  # else it is not among those attacked
    by, leak = strongest
    return {
        "defence": entry_shown(point.defence).title,
        "strength": point.label,
        "useful": round(point.utility[task].value, 1),
        "useful, 95 %": point.utility[task].ci95.said(),
        "leaks": round(leak.value, 1),
        "leaks, 95 %": leak.ci95.said(),
        "by": attacker_said(by),
        "needs": told_of(by)[1],
        "n": leak.n,
        "seeds": leak.n_seeds,
        "promise": odds_promised(DefenceSpec.of(point.defence, dict(point.settings))),
        "tokens back": round(point.token_inversion.value, 1) if point.token_inversion else None,
        "training": minutes_said(point),
        "a text": milliseconds_said(point),
    }


def _of_all_words(point: Point) -> float | None:
    score = point.leakage_of_all_words
    return None if score is None else round(score.value, 1)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _each(point: Point, attackers: Sequence[str], reads: str) -> dict[str, str]:
    """Return what each attacker reads, with its interval."""
    found = point.read_by(reads)
    return {
        f"by: {attacker_said(name)}": found[name].said() if name in found else ""
        for name in attackers
    }
