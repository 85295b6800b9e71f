"""Which defence to take: chosen on what is certain of usefulness and leakage, not on points.

What leaks is what the attacker is after: words, an attribute, or who was in the training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.defences.registry import DEFENCES
from core.results import Score
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_setting import promises
from core.studies.tradeoff_summary import Point, Tradeoff

__all__ = [
    "SHARE",
    "Choice",
    "attacked",
    "beside_none",
    "choose",
    "high",
    "keeps",
    "leak_of",
    "low",
    "reads_of",
    "to_compare",
    "untimed",
    "within",
]

SHARE = 0.9
"""Of the way from guessing to the undefended encoder: what is to be kept, unless told."""


@dataclass(frozen=True)
class Choice:
    """What the figures say of the defences for one task.

    Attributes
    ----------
    promising, measured : Point or None
        Of the defences that keep enough, the one that surely leaks least: of those that promise
        something, and of those that were only measured. None where none keeps enough.
    base : Point
        Without a defence.
    alike : tuple of Point
        Others that keep enough and cannot be told apart from the best, by their leakage.
    reads : str
        What the attacker is after.
    """

    promising: Point | None
    measured: Point | None
    base: Point
    alike: tuple[Point, ...]
    reads: str = "words"

    def leak(self, point: Point) -> Score:
        """Return what the strongest attacker reads through a defence."""
        return leak_of(point, self.reads)

    @property
    def best(self) -> Point | None:
        """The one of the two that surely leaks less, if there is one."""
        kept = [p for p in (self.promising, self.measured) if p is not None]
        return _least(kept, self.reads)

    @property
    def helps(self) -> bool:
        """Whether the best surely leaks less than no defence does."""
        return self.best is not None and helps(self.best, self.base, self.reads)

    @property
    def shown(self) -> Point:
        """What a page shows first: the best, or no defence where none helps."""
        return self.best if self.best is not None and self.helps else self.base


def reads_of(found: Tradeoff) -> list[str]:
    """Return what attackers were after, of the undefended vectors and of others."""
    base = found.undefended
    return [
        what
        for what in READS
        if base.read_by(what) and any(p.read_by(what) for p in found.points if p is not base)
    ] or ["words"]


def within(found: Tradeoff, milliseconds: float | None) -> Tradeoff:
    """Return the settings that take so long a text at most; all where no limit is given.

    Those that were not timed stay, and so does no defence: all are held against it.
    """
    if milliseconds is None:
        return found
    kept = (
        p
        for p in found.points
        if p.milliseconds is None or p.milliseconds <= milliseconds or _is_base(p)
    )
    return replace(found, points=tuple(kept))


def untimed(found: Tradeoff) -> list[Point]:
    """Return the settings of which nobody knows how long a text takes."""
    return [point for point in found.points if point.milliseconds is None]


def attacked(found: Tradeoff, task: str, reads: str = "words") -> list[Point]:
    """Return the settings of which the usefulness for a task and a leakage were measured.

    What protects the training texts of a classifier is no choice for a task without one.
    """
    return [
        p
        for p in found.points
        if task in p.utility
        and p.read_by(reads)
        and not (reads == "membership" and task in p.as_without)
    ]


def leak_of(point: Point, reads: str = "words") -> Score:
    """Return what the strongest attacker reads who is after it; NaN where none was tried."""
    found = point.strongest(reads)
    return found[1] if found else Score(math.nan)


def choose(found: Tradeoff, task: str, share: float = SHARE, reads: str = "words") -> Choice:
    """Return the defences to take where so much of the usefulness is to be kept.

    Usefulness counts by the lower bound of its interval, leakage by the upper one, so that the
    best of many is not the luckiest of many.
    """
    base = found.undefended
    open_to = attacked(found, task, reads)
    kept = [p for p in open_to if not _is_base(p) and keeps(p, base, task, share)]
    promising = _least([p for p in kept if promises(p, reads)], reads)
    measured = _least([p for p in kept if not promises(p, reads)], reads)
    best = _least([p for p in (promising, measured) if p is not None], reads)
    alike = [] if best is None else [
        p for p in kept
        if p is not best and not leak_of(p, reads).is_resolved_from(leak_of(best, reads))
    ]  # fmt: skip
    return Choice(promising, measured, base, tuple(alike), reads)


def to_compare(found: Tradeoff, task: str, choice: Choice) -> Point:
    """Return the setting to hold against no defence: of those that keep enough, or else of all."""
    if choice.best is not None:
        return choice.best
    others = [p for p in attacked(found, task, choice.reads) if not _is_base(p)]
    return _least(others, choice.reads) or choice.base


def keeps(point: Point, base: Point, task: str, share: float) -> bool:
    """Whether a defence surely keeps a share of the way from guessing to no defence.

    By the interval of the difference on the same texts where that was measured; else by that of
    the usefulness itself.
    """
    useful = base.utility[task]
    worth = useful.value - useful.chance
    change = point.change.get(task)
    if change is not None:
        return low(change) >= -(1 - share) * worth
    return low(point.utility[task]) >= useful.chance + share * worth


def helps(point: Point, base: Point, reads: str = "words") -> bool:
    """Whether a defence surely leaks less than none: their intervals share no value."""
    return high(leak_of(point, reads)) < low(leak_of(base, reads))


def beside_none(point: Point, base: Point, reads: str = "words") -> str:
    """Return in words how much a defence leaks beside none; empty where it is surely less.

    Where words are released, an attacker reads them off, and knows more than a vector tells.
    """
    if helps(point, base, reads):
        return ""
    if low(leak_of(point, reads)) > high(leak_of(base, reads)):
        return "more than without a defence"
    return "not told apart from no defence"


def low(score: Score) -> float:
    """Return the lower end of a score; its value where there is no interval."""
    return score.ci95.low if score.has_interval else score.value


def high(score: Score) -> float:
    """Return the upper end of a score; its value where there is no interval."""
    return score.ci95.high if score.has_interval else score.value


def _least(points: Sequence[Point], reads: str) -> Point | None:
    return min(points, key=lambda point: high(leak_of(point, reads)), default=None)


def _is_base(point: Point) -> bool:
    entry = DEFENCES.get(point.defence)
    return bool(entry and entry.is_baseline)
