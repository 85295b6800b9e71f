"""The figure and the tables of the page of trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.defences.metric_dp.promise import HARDLY, odds_said
from core.defences.metric_dp.promised import EXAMPLE
from core.figures.tradeoff import READABLE, READABLE_MARK, attacker_said, tradeoff_figure
from core.said import in_a_row, leak_said, percent_said
from core.spreadsheets import table_csv
from core.studies.odds import ODDS
from core.studies.tradeoff_choice import (
    Choice,
    attacked,
    beside_none,
    choose,
    is_readable_and_worse,
    leak_of,
    reads_of,
)
from core.studies.tradeoff_frontier import frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_said import told_of
from core.studies.tradeoff_setting import entry_shown, milliseconds_said, minutes_said
from core.studies.tradeoff_summary import Point, Tradeoff
from core.studies.tradeoff_told import KEEPS, point_said
from core.tasks.names import task_said
from dashboard.charts import chart_config
from dashboard.downloads import save_csv
from dashboard.promise import is_hardly_any
from dashboard.tradeoff import state
from dashboard.tradeoff.finding import missing_said, read_said
from dashboard.tradeoff.promised import odds_promised, promised

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
        f"no setting significantly beats {best}; the table below holds the same numbers",
    )
    base = left.undefended
    is_readable = any(is_readable_and_worse(p, base, reads) for p in attacked(left, task, reads))
    st.caption(
        "Down is private, right is useful. Click a point to see a sentence at its setting. "
        f"{_rings_said(left)}"
        "Dashed: the lowest leakage to the tested attackers at each usefulness, by the worse ends "
        "of the intervals. If the intervals hold, the best setting lies in the band below it. The "
        "intervals of leakage are corrected for the number of settings."
        + (f" {READABLE_MARK}: {READABLE}; {_READABLE_SAID}" if is_readable else "")
    )
    if said := _unmeasured_said(left, task, reads):
        st.caption(said)
    if missing := missing_said(found):
        st.caption(f"{missing} This measures all of it: `{_MEASURE_ALL}`")


_READABLE_SAID = (
    "the defence releases tokens, or their vectors, which can be read one by one, so it leaks more "
    "than a vector without a defence."
)


def _unmeasured_said(found: Tradeoff, task: str, reads: str) -> str:
    """Return which settings were not measured for a task, by defence; empty where all were."""
    measured = {id(point) for point in attacked(found, task, reads)}
    left_out = [point for point in found.points if id(point) not in measured]
    if not left_out:
        return ""
    names = dict.fromkeys(entry_shown(point.defence).title for point in left_out)
    n = len(left_out)
    verb = "setting was" if n == 1 else "settings were"
    return f"{n} {verb} not measured for this, of {in_a_row(list(names))}."


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
                "best": _least_said(choice.best, choice),
                "promising": _least_said(choice.promising, choice),
                "odds": _odds_said(choice.promising),
            }
        )
    columns = st.column_config
    st.dataframe(
        rows,
        key="all_tasks",
        hide_index=True,
        column_config={
            "task": columns.TextColumn("Useful for"),
            "plain": columns.NumberColumn("Without a defence", format="%.1f"),
            "best": columns.TextColumn(
                "Leaks least",
                help=f"To the strongest attacker: {READS[reads]} [95 % interval, corrected for the "
                "number of settings compared]",
            ),
            "promising": columns.TextColumn("Leaks least of those that promise something"),
            "odds": columns.TextColumn(
                "It promises, odds up to", help=f"{_ODDS_OF}, in “{EXAMPLE}”"
            ),
        },
    )
    st.caption(
        f"Among the settings that keep {percent_said(share)} of the way from guessing to no "
        f"defence ({KEEPS}), the one with the least upper end of leakage, corrected for their "
        "number; without a defence: "
        f"{read_said(leak_of(found.undefended, reads), reads)}. "
        f"Odds: {_ODDS_OF}; of texts as a whole, the first two."
    )


def _odds_said(point: Point | None) -> str:
    """Return the odds of a setting, and whether they are worth anything."""
    if point is None:
        return "–"
    found = promised(point.spec)
    is_void = found is not None and is_hardly_any(found.after(point.releases))
    return f"{odds_promised(point.spec, point.releases)}{': almost no promise' * is_void}"


def _least_said(point: Point | None, choice: Choice) -> str:
    if point is None:
        return "none keeps enough"
    told = choice.beside_none(point)
    leak = choice.leak(point)
    read = leak_said(leak) if choice.reads == "words" else leak.said(0)
    if told:
        return f"none significantly less; nearest {point_said(point)}: {read}, {told}"
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
            "beside none": _beside_none(point, found.undefended, reads),
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
            "change": columns.TextColumn(
                "Beside none",
                help="The difference from no defence on the same texts [95 % interval]: by its "
                "lower end a setting counts as useful enough",
            ),
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
            "beside none": columns.TextColumn(
                "Beside no defence", help="By whether the 95 % intervals of leakage share a value"
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
                "Not beaten",
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
        "useful": float(point.utility[task].parts()[0]),
        "useful, 95 %": point.utility[task].parts()[1],
        "change": point.change[task].said() if task in point.change else "",
        "leaks": float(leak.parts()[0]),
        "leaks, 95 %": leak.parts()[1],
        "by": attacker_said(by),
        "needs": told_of(by)[1],
        "n": leak.n,
        "seeds": leak.n_seeds,
        "promise": odds_promised(point.spec, point.releases),
        "tokens back": round(point.token_inversion.value, 1) if point.token_inversion else None,
        "training": minutes_said(point),
        "a text": milliseconds_said(point),
    }


def _beside_none(point: Point, base: Point, reads: str) -> str:
    """Return in a few words how a setting leaks beside none, and why where it is more."""
    if point is base:
        return ""
    told = beside_none(leak_of(point, reads), leak_of(base, reads)) or "significantly less"
    is_readable = is_readable_and_worse(point, base, reads)
    return f"{told}: {READABLE}" if is_readable else told


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
