"""What of the page of trade-offs goes into a story."""

from __future__ import annotations

from core.figures.tradeoff import tradeoff_figure
from core.story.views_defend import facts_of, settings_table, told_of_choice
from core.story.views_read import origin
from core.studies.tradeoff_choice import choose
from core.studies.tradeoff_frontier import frontier
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_summary import Tradeoff
from core.tasks.names import task_said
from dashboard.story.pinning import Seen
from dashboard.tradeoff import state

__all__ = ["seen"]


def seen(left: Tradeoff, task: str, share: float, reads: str, most: float | None) -> Seen:
    """Return the figure as it stands, and the settings that the headline is about."""
    choice = choose(left, task, share, reads)
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
        table=settings_table(told_of_choice(choice), choice.base, task, reads),
        facts=(*facts_of(left, choice.shown, task, reads), *origin(left.provenances)),
        commands=("tradeoff",),
    )
