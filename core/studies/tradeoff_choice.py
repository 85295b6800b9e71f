"""Which defence to take: chosen by interval ends, corrected for the number of settings compared.

What leaks is what the attacker is after: words, an attribute, or who was in the training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.defences.registry import DEFENCES
from core.metrics import simultaneous_intervals
from core.results import Interval, Score
from core.studies.defence_grid import is_of_network
from core.studies.listed_summary import listed_told, shipped_listed
from core.studies.tradeoff_point import READS
from core.studies.tradeoff_setting import entry_shown, promises
from core.studies.tradeoff_summary import Point, Tradeoff

__all__ = [
    "LEAKS_LEAST",
    "NAMES_NOT_TESTED",
    "SHARE",
    "Choice",
    "attacked",
    "beside_none",
    "choose",
    "high",
    "keeps",
    "is_readable_and_worse",
    "leak_of",
    "listed_said",
    "low",
    "may_lose",
    "reads_of",
    "simultaneous_leaks",
    "to_compare",
    "unproven",
    "untimed",
    "within",
]

SHARE = 0.9
"""Of the way from guessing to the undefended encoder: what is to be kept, unless told."""

LEAKS_LEAST: Mapping[str, str] = {
    "words": "leaks the fewest words",
    "attribute": "leaks the attribute least",
    "membership": "leaks membership least",
}
"""What is said of the best setting, by what the attacker is after: one of `READS`."""

NAMES_NOT_TESTED = (
    "Attacks that pick a name or number from a list of candidates were not tested on this "
    "defence: this is no evidence of safety."
)
"""What a low leakage of words does not show."""


def listed_said(encoder: str, point: Point, *, is_brief: bool = False) -> str:
    """Return what an attacker with a list of candidates finds behind a setting, or that none tried.

    Raises
    ------
    ArtifactError
        What ships for the encoder is damaged; the message names the file.
    """
    found = shipped_listed(encoder)
    if found is None:
        return NAMES_NOT_TESTED
    return listed_told(found, point.defence, point.settings, is_brief=is_brief) or NAMES_NOT_TESTED


@dataclass(frozen=True)
class Choice:
    """The settings to choose for one task, and what they leak, corrected for the choice.

    Attributes
    ----------
    promising, measured : Point or None
        Of the settings that keep enough usefulness, the one whose upper bound of leakage is least:
        among those with a guarantee, and among the others. None where none keeps enough.
    base : Point
        Without a defence.
    alike : tuple of Point
        Other settings that keep enough and do not leak significantly more than the best.
    reads : str
        What the attacker is after.
    n_compared : int
        Settings that keep enough usefulness, from which the least was chosen.
    leaks : dict
        Defence and settings to what the strongest attacker reads, for the settings compared: the
        value, with an interval that holds for all of them together.
    """

    promising: Point | None
    measured: Point | None
    base: Point
    alike: tuple[Point, ...]
    reads: str = "words"
    n_compared: int = 0
    leaks: Mapping[tuple[str, tuple[tuple[str, Any], ...]], Score] = field(default_factory=dict)

    def leak(self, point: Point) -> Score:
        """Return what the strongest attacker reads through a defence.

        The interval of a setting that was compared is corrected for the number of settings; that
        of any other is its own.
        """
        corrected = self.leaks.get((point.defence, point.settings))
        return leak_of(point, self.reads) if corrected is None else corrected

    @property
    def best(self) -> Point | None:
        """The one of the two with the lower upper bound, if there is one."""
        kept = [p for p in (self.promising, self.measured) if p is not None]
        return min(kept, key=lambda point: high(self.leak(point)), default=None)

    @property
    def helps(self) -> bool:
        """Whether the best leaks significantly less than no defence does."""
        return self.best is not None and not self.beside_none(self.best)

    @property
    def shown(self) -> Point:
        """What a page shows first: the best, or no defence where none helps."""
        return self.best if self.best is not None and self.helps else self.base

    def beside_none(self, point: Point) -> str:
        """Return in words how a setting's leakage compares with none, as `beside_none`."""
        return beside_none(self.leak(point), leak_of(self.base, self.reads))


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


def simultaneous_leaks(points: Sequence[Point], reads: str = "words") -> list[Score]:
    """Return what the strongest attacker reads of each setting, with intervals that hold together.

    The least of K upper bounds of 97.5 % is too low in 1 - 0.975^K of all studies where K settings
    leak alike: 22 of 100 for K = 10. Here each end is at 1 - 0.025 / K, so that the upper end of
    whichever setting is chosen holds in 97.5 of 100 (`core.metrics.simultaneous_intervals`).
    The strongest attacker is the one with the highest upper end.
    """
    if len(points) < 2:
        return [leak_of(point, reads) for point in points]
    names = [(i, name) for i, point in enumerate(points) for name in point.read_by(reads)]
    runs = [points[i].runs.get(reads, {}).get(name) or (points[i].read_by(reads)[name],)
            for i, name in names]  # fmt: skip
    is_same = any(reads in point.same_sample for point in points)
    ends = simultaneous_intervals(runs, len(points), is_same_sample=is_same)
    read: list[list[Score]] = [[] for _ in points]
    for (i, name), interval in zip(names, ends, strict=True):
        score = points[i].read_by(reads)[name]
        cut = Interval(max(0.0, interval.low), min(100.0, interval.high))
        read[i].append(replace(score, ci95=cut) if score.has_interval else score)
    return [max(each, key=lambda score: (high(score), score.value)) for each in read]


def choose(found: Tradeoff, task: str, share: float = SHARE, reads: str = "words") -> Choice:
    """Return the settings to choose where so much of the usefulness is to be kept.

    Usefulness counts as in `keeps`, leakage by the upper end of an interval that is corrected for
    the number of settings that keep enough.
    """
    base = found.undefended
    open_to = attacked(found, task, reads)
    kept = [p for p in open_to if not _is_base(p) and keeps(p, base, task, share)]
    leaks = simultaneous_leaks(kept, reads)
    order = sorted(range(len(kept)), key=lambda i: high(leaks[i]))
    promising = next((kept[i] for i in order if promises(kept[i], reads)), None)
    measured = next((kept[i] for i in order if not promises(kept[i], reads)), None)
    alike = [kept[i] for i in sorted(order[1:])
             if not leaks[i].is_resolved_from(leaks[order[0]])]  # fmt: skip
    corrected = {(p.defence, p.settings): leak for p, leak in zip(kept, leaks, strict=True)}
    return Choice(promising, measured, base, tuple(alike), reads, len(kept), corrected)


def to_compare(found: Tradeoff, task: str, choice: Choice) -> Point:
    """Return the setting to hold against no defence: of those that keep enough, or else of all."""
    if choice.best is not None:
        return choice.best
    others = [p for p in attacked(found, task, choice.reads) if not _is_base(p)]
    return min(others, key=lambda p: high(leak_of(p, choice.reads)), default=choice.base)


def keeps(point: Point, base: Point, task: str, share: float, *, is_shown: bool = True) -> bool:
    """Whether a defence is shown to keep a share of the way from guessing to no defence.

    By the lower end of the interval of the difference on the same texts where that was measured;
    else of that of the usefulness itself. Where it need not be shown, by the value alone.
    """
    at = low if is_shown else _value
    lost, change = may_lose(base, task, share), point.change.get(task)
    if change is not None:
        return at(change) >= -lost
    return at(point.utility[task]) >= base.utility[task].value - lost


def may_lose(base: Point, task: str, share: float) -> float:
    """Return by how much usefulness may fall where a share of its way from guessing is kept."""
    useful = base.utility[task]
    return (1 - share) * (useful.value - useful.chance)


def _value(score: Score) -> float:
    return score.value


def unproven(
    found: Tradeoff, task: str, share: float = SHARE, reads: str = "words"
) -> Point | None:
    """Return the setting that may keep enough and leaks least, significantly less than none.

    One whose usefulness is enough by its value and not by the lower end of its interval; None
    where there is none. Leakage counts as in `choose`, corrected for the number of such settings.
    """
    base = found.undefended
    maybe = [
        p
        for p in attacked(found, task, reads)
        if not _is_base(p)
        and keeps(p, base, task, share, is_shown=False)
        and not keeps(p, base, task, share)
    ]
    leaks = simultaneous_leaks(maybe, reads)
    less = [(high(leak), i) for i, leak in enumerate(leaks)
            if not beside_none(leak, leak_of(base, reads))]  # fmt: skip
    return maybe[min(less)[1]] if less else None


def beside_none(leak: Score, base: Score) -> str:
    """Return in words how what leaks compares with what leaks without a defence.

    Empty where it is significantly less: the intervals share no value.
    """
    if high(leak) < low(base):
        return ""
    if low(leak) > high(base):
        return "more than without a defence"
    return "not significantly less than without a defence"


def is_readable_and_worse(point: Point, base: Point, reads: str = "words") -> bool:
    """Whether a defence releases tokens, or their vectors, and leaks significantly more than none.

    Without a defence the attacker has a vector alone; released tokens can be read off.
    """
    entry = entry_shown(point.defence)
    is_readable = entry.releases_tokens or is_of_network(point.defence)
    return is_readable and low(leak_of(point, reads)) > high(leak_of(base, reads))


def low(score: Score) -> float:
    """Return the lower end of a score; its value where there is no interval."""
    return score.ci95.low if score.has_interval else score.value


def high(score: Score) -> float:
    """Return the upper end of a score; its value where there is no interval."""
    return score.ci95.high if score.has_interval else score.value


def _is_base(point: Point) -> bool:
    entry = DEFENCES.get(point.defence)
    return bool(entry and entry.is_baseline)
