"""Which defence to take: chosen on what is certain of usefulness and leakage, not on points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.defences.registry import DEFENCES
from core.results import Score
from core.studies.tradeoff_summary import Point, Tradeoff

__all__ = ["SHARE", "Choice", "beside_none", "choose", "keeps"]

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
    """

    promising: Point | None
    measured: Point | None
    base: Point
    alike: tuple[Point, ...]

    @property
    def best(self) -> Point | None:
        """The one of the two that surely leaks less, if there is one."""
        return _least([p for p in (self.promising, self.measured) if p is not None])

    @property
    def helps(self) -> bool:
        """Whether the best surely leaks less than no defence does."""
        return self.best is not None and helps(self.best, self.base)

    @property
    def shown(self) -> Point:
        """What a page shows first: the best, or no defence where none helps."""
        return self.best if self.best is not None and self.helps else self.base


def choose(found: Tradeoff, task: str, share: float = SHARE) -> Choice:
    """Return the defences to take where so much of the usefulness is to be kept.

    Usefulness counts by the lower bound of its interval, leakage by the upper one, so that the
    best of many is not the luckiest of many.
    """
    base = found.undefended
    kept = [p for p in found.points if not _is_base(p) and keeps(p, base, task, share)]
    promising = _least([p for p in kept if p.promises])
    measured = _least([p for p in kept if not p.promises])
    best = _least([p for p in (promising, measured) if p is not None])
    alike = [] if best is None else [
        p for p in kept if p is not best and not p.leakage.is_resolved_from(best.leakage)
    ]  # fmt: skip
    return Choice(promising, measured, base, tuple(alike))


def keeps(point: Point, base: Point, task: str, share: float) -> bool:
    """Whether a defence surely keeps a share of the way from guessing to no defence.

    By the interval of the difference on the same texts where that was measured; else by that of
    the usefulness itself.
    """
    useful = base.utility[task]
    worth = useful.value - useful.chance
    change = point.change.get(task)
    if change is not None:
        return _low(change) >= -(1 - share) * worth
    return _low(point.utility[task]) >= useful.chance + share * worth


def helps(point: Point, base: Point) -> bool:
    """Whether a defence surely leaks less than none: their intervals share no value."""
    return _high(point.leakage) < _low(base.leakage)


def beside_none(point: Point, base: Point) -> str:
    """Return in words how much a defence leaks beside none; empty where it is surely less.

    Where words are released, an attacker reads them off, and knows more than a vector tells.
    """
    if helps(point, base):
        return ""
    if _low(point.leakage) > _high(base.leakage):
        return "more than without a defence"
    return "not told apart from no defence"


def _least(points: Sequence[Point]) -> Point | None:
    return min(points, key=lambda point: _high(point.leakage), default=None)


def _is_base(point: Point) -> bool:
    entry = DEFENCES.get(point.defence)
    return bool(entry and entry.is_baseline)


def _low(score: Score) -> float:
    return score.ci95.low if score.has_interval else score.value


def _high(score: Score) -> float:
    return score.ci95.high if not math.isnan(score.ci95.high) else score.value
