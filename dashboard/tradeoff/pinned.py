"""What of the page of trade-offs goes into a story."""

from __future__ import annotations

from dataclasses import replace

from core.figures.tradeoff import attacker_said, tradeoff_figure
from core.story.views_defend import (
    encoder_of,
    facts_of,
    odds_fact,
    settings_table,
    told_of_choice,
)
from core.story.views_read import origin
from core.studies.tradeoff_choice import choose
from core.studies.tradeoff_frontier import frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_summary import Tradeoff
from core.tasks.names import task_said
from dashboard.story.pinning import OWN_ROWS, Seen
from dashboard.tradeoff import state

__all__ = ["seen"]


def seen(
    left: Tradeoff,
    task: str,
    share: float,
    reads: str,
    most: float | None,
    *,
    is_own: bool = False,
    with_typed: bool = False,
) -> Seen:
    """Return the figure as it stands, and the settings that the headline is about.

    Parameters
    ----------
    is_own : bool
        The rows are the visitor's own.
    with_typed : bool
        Whether their names, and on what machine they were measured, may be told.
    """
    is_hidden = is_own and not with_typed
    if is_hidden:
        left = replace(left, points=tuple(replace(p, provenances=()) for p in left.points))
    choice = choose(left, task, share, reads)
    told = told_of_choice(choice)
    return Seen(
        figure=tradeoff_figure(
            left,
            task,
            reads=reads,
            chosen=state.shown_places(left),
            edge=frontier(left, task, reads),
            is_timed=most is not None,
        ),
        alt=f"{READS[reads]} against usefulness for {task_said(task)}, a line for each defence",
        table=settings_table(choice, task, encoder=encoder_of(left)),
        facts=(
            *facts_of(left, choice.shown, task, reads, n_compared=choice.n_compared),
            *odds_fact(told, left),
            *origin(left.provenances),
        ),
        commands=("none: rows of a study of one's own",) if is_own else ("tradeoff",),
        instead=_numbered(left) if is_hidden else {},
        opens=OWN_ROWS if is_own else "",
        is_live=not is_own,
    )


def _numbered(found: Tradeoff) -> dict[str, str]:
    """Return what tasks and attackers that nobody here knows are called instead."""
    tasks = [name for name in found.tasks if task_said(name) == name]
    attackers = [name for name in found.attackers if attacker_said(name) == name]
    told = {name: f"task {i}" for i, name in enumerate(tasks, 1)}
    return told | {name: f"attacker {i}" for i, name in enumerate(attackers, 1)}
