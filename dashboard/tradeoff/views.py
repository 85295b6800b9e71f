"""The figure and the tables of the trade-off page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from leakscope.core.defences.metric_dp.distances import EXAMPLE
from leakscope.core.defences.metric_dp.guarantee import HARDLY, format_odds
from leakscope.core.defences.setting import entry_shown
from leakscope.core.figures.tradeoff import (
    READABLE,
    READABLE_MARK,
    format_attacker,
    tradeoff_figure,
)
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.tradeoff import (
    KEEPS,
    best_by_task,
    describe_missing,
    describe_point,
    format_guarantee,
    guarantees_after_releases,
)
from leakscope.core.formatting import capitalise, format_percent, join_words
from leakscope.core.spreadsheets import table_csv
from leakscope.core.studies.deniability.odds import ODDS
from leakscope.core.studies.tradeoff.choice import (
    Choice,
    attacked_settings,
    attacked_targets,
    beside_none,
    frontier,
    is_readable_and_worse,
    leak_of,
)
from leakscope.core.studies.tradeoff.summary import (
    READS,
    Point,
    Tradeoff,
    describe_milliseconds,
    describe_minutes,
)
from leakscope.core.studies.tradeoff.tables import attacker_family
from leakscope.core.tasks.names import describe_task
from leakscope.dashboard.story.pinning import OWN_ROWS, PinnedView
from leakscope.dashboard.tradeoff import state
from leakscope.dashboard.ui.charts import chart_config
from leakscope.dashboard.ui.downloads import save_csv
from leakscope.dashboard.ui.guarantee import show_guarantees

_MEASURE_ALL = (
    "leakscope study tradeoff --spec docs/presets/tradeoff-all.spec.json --files DATA "
    "--jobs 2 --out tradeoff-all.json"
)
_ODDS_OF = (
    "a token and its nearest neighbour · two words a typical (median) distance apart · a whole "
    "sentence"
)


def pinned(
    answer: Callable[[Tradeoff], Finding], found: Tradeoff, *, is_own: bool, with_typed: bool
) -> PinnedView:
    """Build the page's answer for a story; `with_typed=False` hides names in own results."""
    is_hidden = is_own and not with_typed
    if is_hidden:
        found = replace(found, points=tuple(replace(p, provenances=()) for p in found.points))
    return PinnedView(
        finding=answer(found),
        instead=_anonymous_names(found) if is_hidden else {},
        opens=OWN_ROWS if is_own else "",
        is_live=not is_own,
    )


def _anonymous_names(found: Tradeoff) -> dict[str, str]:
    """Return replacements for names that only the visitor knows: task 1, attacker 1, …."""
    tasks = [name for name in found.tasks if describe_task(name) == name]
    attackers = [name for name in found.attackers if format_attacker(name) == name]
    names = {name: f"task {i}" for i, name in enumerate(tasks, 1)}
    return names | {name: f"attacker {i}" for i, name in enumerate(attackers, 1)}


def figure_name(task: str, reads: str, most: float | None = None) -> str:
    """Build the key of a figure from its task, the attacker's target and the time limit."""
    parts = [reads] * (reads != "words") + ([] if most is None else [f"{most:g}ms"])
    return "-".join(["tradeoff", task, *parts])


def show_guarantee(slot: Any, found: Tradeoff, choice: Choice) -> None:
    """Draw the guarantee of the best setting that has one; nothing without one."""
    point = choice.promising
    guarantees = None if point is None else guarantees_after_releases(found, point)
    if not choice.helps or point is None or guarantees is None:
        return
    lead = f"What “{describe_point(point)}” guarantees."
    show_guarantees(guarantees, slot, lead=lead)


def figure_notes(left: Tradeoff, task: str, reads: str) -> None:
    """Draw a caption on how to read the figure of the settings within the time limit."""
    base = left.undefended
    is_readable = any(
        is_readable_and_worse(p, base, reads) for p in attacked_settings(left, task, reads)
    )
    st.caption(
        "Lower is more private, further right is more useful. Click a point to try its setting on "
        f"your sentence. {_describe_rings(left)}" + (_WHY_READABLE if is_readable else "")
    )


def unmeasured_notes(found: Tradeoff, left: Tradeoff, task: str, reads: str) -> None:
    """Draw captions: what the figure's line means, and which settings were not measured.

    Parameters
    ----------
    left : Tradeoff
        The points of `found` within the time limit.
    """
    st.caption(
        "The dashed line shows the lowest leakage that a setting reached at each utility, against "
        "the tested attackers. It uses the worse end of each interval: more leakage, less utility. "
        "The grey band below the line shows how much lower the best leakage could be, given the "
        "intervals. The intervals of leakage are corrected for the number of settings."
    )
    if unmeasured := _describe_unmeasured(left, task, reads):
        st.caption(unmeasured)
    if missing := describe_missing(found):
        st.caption(f"{missing} To measure everything: `{_MEASURE_ALL}`")


_WHY_READABLE = (
    f"{READABLE_MARK} ({READABLE}) marks settings that leak more than no defence: they publish the "
    "changed words themselves, or a vector per word, which anyone can read one by one."
)


def _describe_unmeasured(found: Tradeoff, task: str, reads: str) -> str:
    """Describe which settings were not measured for a task; "" if all were."""
    measured = {id(point) for point in attacked_settings(found, task, reads)}
    left_out = [point for point in found.points if id(point) not in measured]
    if not left_out:
        return ""
    names = dict.fromkeys(entry_shown(point.defence).title for point in left_out)
    n = len(left_out)
    if n == 1:
        return f"1 setting was not measured for this: “{next(iter(names))}”."
    named = join_words([f"“{name}”" for name in names])
    return f"{n} settings were not measured for this. They belong to these defences: {named}."


def _describe_rings(found: Tradeoff) -> str:
    """Describe which settings (A, B) are ringed in the figure; "" if none was measured."""
    places = state.compared_points(found)
    rings = [
        f"**{side}** is “{describe_point(found.points[place])}”" for side, place in places.items()
    ]
    if not rings:
        return ""
    return f"A ring marks each setting that is tried on your sentence below: {join_words(rings)}. "


def shipped_figure(found: Tradeoff, task: str, reads: str) -> None:
    """Draw the figure of shipped results below the visitor's own, if they have the task."""
    st.header("Shipped results for comparison", anchor=False)
    if task not in found.tasks:
        st.caption(f"The shipped results do not include {describe_task(task)}.")
        return
    reads = reads if reads in attacked_targets(found) else "words"
    st.plotly_chart(
        tradeoff_figure(found, task, reads=reads, edge=frontier(found, task, reads)),
        key=f"shipped-{figure_name(task, reads)}",
        config=chart_config(),
        alt=f"{capitalise(READS[reads])} against utility for {describe_task(task)}, shipped "
        "results",
    )


def best_settings_table(found: Tradeoff, share: float, reads: str) -> None:
    """Choose the best setting for each task, and draw them as a table."""
    columns = st.column_config
    st.dataframe(
        best_by_task(found, share, reads),
        key="all_tasks",
        hide_index=True,
        column_config={
            "task": columns.TextColumn("Task"),
            "plain": columns.NumberColumn("Utility without a defence", format="%.1f"),
            "best": columns.TextColumn(
                "Leaks least",
                help=f"The useful setting that leaks least to the strongest attacker: "
                f"{READS[reads]} [95 % CI, corrected for the number of settings compared]",
            ),
            "promising": columns.TextColumn("Leaks least, with a guarantee"),
            "odds": columns.TextColumn("Odds of up to", help=f"{_ODDS_OF}, in “{EXAMPLE}”"),
        },
    )
    st.caption(
        f"A useful setting keeps {format_percent(share)} of the advantage over guessing. {KEEPS} "
        "For each task, the table shows the useful setting whose interval of leakage has the "
        "lowest upper end. These intervals are corrected for the number of useful settings. "
        f"Without a defence, leakage ({READS[reads]}) is "
        f"{leak_of(found.undefended, reads).in_text(0)}. “Odds of up to” has three limits: for a "
        "token and its nearest neighbour, for two words a typical (median) distance apart, and for "
        "a whole sentence. For whole-text vectors, it has only the first two limits, and they are "
        "for texts instead of words."
    )


def points_table(found: Tradeoff, task: str, reads: str) -> None:
    """Draw all measured points as a table; a switch adds a column per attacker."""
    points = attacked_settings(found, task, reads)
    attackers = list(dict.fromkeys(name for point in points for name in point.read_by(reads)))
    shows_each = len(attackers) > 1 and st.toggle(
        "Show each attacker",
        key="each_attacker",
        persist_state="session",
        help="Adds a column per attacker; the strongest one counts",
    )
    edge = {id(point) for point in frontier(found, task, reads).members}
    tells_all = reads == "words" and any(point.all_words for point in points)
    rows = [
        {
            **_point_row(found, point, task, reads),
            **({"of all words": every and round(every.value, 1)} if tells_all else {}),
            "beside none": _compare_with_none(point, found.undefended, reads),
            "unbeaten": id(point) in edge,
            **(_attacker_columns(point, attackers, reads) if shows_each else {}),
        }
        for point in points
        for every in [point.leakage_of_all_words]
    ]
    save_csv(
        lambda: table_csv(rows),
        "tradeoff",
        about="All settings shown, one per row",
    )
    columns = st.column_config
    st.dataframe(
        rows,
        key="points",
        hide_index=True,
        column_config={
            "defence": columns.TextColumn("Defence", pinned=True),
            "strength": columns.TextColumn("Strength", pinned=True),
            "useful, 95 %": columns.TextColumn("Utility, 95 % CI"),
            "leaks, 95 %": columns.TextColumn(
                "Leakage, 95 % CI",
                help="Not corrected for the number of settings; the headline's interval is",
            ),
            "useful": columns.NumberColumn(f"Utility for {describe_task(task)}", format="%.1f"),
            "change": columns.TextColumn(
                "Change of utility",
                help="The difference from no defence on the same texts [95 % CI]: its lower end "
                "decides whether a setting is useful enough",
            ),
            "leaks": columns.NumberColumn(capitalise(READS[reads]), format="%.1f"),
            "by": columns.TextColumn("Strongest attacker"),
            "needs": columns.TextColumn(
                "Needs", help="In addition to the release and knowledge of the defence"
            ),
            "n": columns.NumberColumn("n", help="Attacked texts, summed over seeds if they differ"),
            "seeds": columns.NumberColumn(
                "Seeds", help="Number of runs in the mean, each with its own texts"
            ),
            "of all words": columns.NumberColumn(
                "F1, all words",
                format="%.1f",
                help="The same attacker; words outside its vocabulary count as missed",
            ),
            "beside none": columns.TextColumn(
                "Compared with none", help="Significant if the 95 % CIs of leakage do not overlap"
            ),
            "promise": columns.TextColumn(
                ODDS,
                help="The largest odds at which an output may distinguish two inputs: "
                f"{_ODDS_OF}, in “{EXAMPLE}”. For whole-text vectors, the first two apply to "
                "texts, and there is no third. “none” means no guarantee. Odds above "
                f"{format_odds(HARDLY)} are practically no guarantee.",
            ),
            "tokens back": columns.NumberColumn(
                "Unchanged tokens, %",
                format="%.1f",
                help="For defences that perturb tokens: how often the nearest token is the "
                "original",
            ),
            "training": columns.TextColumn(
                "Training", help="Training time of the defence, on the machine of the measurement"
            ),
            "a text": columns.TextColumn(
                "Time per text",
                help="Encoder and defence together, on the machine of the measurement",
            ),
            "unbeaten": columns.CheckboxColumn(
                "Not beaten",
                help="No other setting is as useful and leaks no more, taking the better "
                "ends of this setting's intervals and the worse ends of the other's",
            ),
        },
    )


def _point_row(found: Tradeoff, point: Point, task: str, reads: str) -> dict[str, Any]:
    """Return a point's results for a task and an attacker's target as a table row (dict)."""
    strongest = point.strongest(reads)
    assert strongest is not None  # guaranteed by `attacked_settings`
    by, leak = strongest
    return {
        "defence": entry_shown(point.defence).title,
        "strength": point.label,
        "useful": float(point.utility[task].parts()[0]),
        "useful, 95 %": point.utility[task].parts()[1],
        "change": point.change[task].format() if task in point.change else "",
        "leaks": float(leak.parts()[0]),
        "leaks, 95 %": leak.parts()[1],
        "by": format_attacker(by),
        "needs": attacker_family(by)[1],
        "n": leak.n,
        "seeds": leak.n_seeds,
        "promise": format_guarantee(found, point),
        "tokens back": round(point.token_inversion.value, 1) if point.token_inversion else None,
        "training": describe_minutes(point),
        "a text": describe_milliseconds(point),
    }


def _compare_with_none(point: Point, base: Point, reads: str) -> str:
    """Describe whether a setting leaks significantly less than no defence, and why if more."""
    if point is base:
        return ""
    difference = beside_none(leak_of(point, reads), leak_of(base, reads)) or "significantly less"
    is_readable = is_readable_and_worse(point, base, reads)
    return f"{difference}: {READABLE}" if is_readable else difference


def _attacker_columns(point: Point, attackers: Sequence[str], reads: str) -> dict[str, str]:
    """Return each attacker's score on a point with its interval, by column title."""
    found = point.read_by(reads)
    return {
        f"by: {format_attacker(name)}": found[name].format() if name in found else ""
        for name in attackers
    }
