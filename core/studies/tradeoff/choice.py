"""The choice of a defence, and the Pareto frontier, by interval ends corrected for their number.

Leakage is measured by the attacker's target: words, an attribute, or membership in training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from leakscope.core.defences.entries import stages_of
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import entry_shown
from leakscope.core.defences.trained.registry import is_of_network
from leakscope.core.metrics import simultaneous_intervals
from leakscope.core.results import Interval, Score
from leakscope.core.specs import DefenceSpec
from leakscope.core.studies.inversion.listed_summary import describe_listed_leak, shipped_listed
from leakscope.core.studies.tradeoff.summary import READS, Point, Tradeoff, promises

SHARE = 0.9
"""The default share of utility above guessing that a defence must keep."""

LEAKS_LEAST: Mapping[str, str] = {
    "words": "leaks least",
    "attribute": "leaks the attribute least",
    "membership": "leaks membership least",
}
"""How the best setting is described, by the attacker's target: one of `READS`."""

NAMES_NOT_TESTED = (
    "Attacks that pick a name or number from a list of candidates were not tested on this "
    "defence. That is no evidence of safety."
)
"""The caveat that low leakage of words says nothing about candidate lists."""


def describe_list_attack(encoder: str, point: Point, *, is_brief: bool = False) -> str:
    """Describe what an attacker with a candidate list finds behind a setting, if that was tested.

    Raises
    ------
    ArtifactError
        What ships for the encoder is damaged; the message names the file.
    """
    found = shipped_listed(encoder)
    if found is None:
        return NAMES_NOT_TESTED
    return (
        describe_listed_leak(found, point.defence, point.settings, is_brief=is_brief)
        or NAMES_NOT_TESTED
    )


@dataclass(frozen=True)
class Choice:
    """The best settings for one task, and their leakage corrected for multiple comparisons.

    Attributes
    ----------
    promising, measured : Point or None
        The setting with the lowest upper bound of leakage that keeps enough utility: among those
        with a guarantee, and among the others. None if none keeps enough.
    base : Point
        Without a defence.
    alike : tuple of Point
        Other settings that keep enough and do not leak significantly more than the best.
    reads : str
        The attacker's target.
    n_compared : int
        Number of settings that keep enough utility, from which the best was chosen.
    leaks : dict
        Defence and settings to the strongest attacker's score, for the compared settings, with
        simultaneous intervals.
    """

    promising: Point | None
    measured: Point | None
    base: Point
    alike: tuple[Point, ...]
    reads: str = "words"
    n_compared: int = 0
    leaks: Mapping[tuple[str, tuple[tuple[str, Any], ...]], Score] = field(default_factory=dict)

    def leak(self, point: Point) -> Score:
        """Return the strongest attacker's score on a setting, its interval corrected if compared.

        The interval of a compared setting is corrected for the number of settings; other settings
        have their own intervals.
        """
        corrected = self.leaks.get((point.defence, point.settings))
        return leak_of(point, self.reads) if corrected is None else corrected

    @property
    def best(self) -> Point | None:
        """The one of `promising` and `measured` with the lower upper bound; None without either."""
        kept = [p for p in (self.promising, self.measured) if p is not None]
        return min(kept, key=lambda point: high(self.leak(point)), default=None)

    @property
    def helps(self) -> bool:
        """Whether the best setting leaks significantly less than no defence."""
        return self.best is not None and not self.beside_none(self.best)

    @property
    def shown(self) -> Point:
        """The setting that a page shows first: the best, or no defence if none helps."""
        return self.best if self.best is not None and self.helps else self.base

    def beside_none(self, point: Point) -> str:
        """Describe how a setting's leakage compares with no defence; "" if significantly less."""
        return beside_none(self.leak(point), leak_of(self.base, self.reads))


def attacked_targets(found: Tradeoff) -> list[str]:
    """Return which targets (`words`, …) were attacked both without and with a defence."""
    base = found.undefended
    return [
        what
        for what in READS
        if base.read_by(what) and any(p.read_by(what) for p in found.points if p is not base)
    ] or ["words"]


def within_time(found: Tradeoff, milliseconds: float | None) -> Tradeoff:
    """Return the trade-off with only the settings within a time per text; unchanged if None.

    Untimed settings are kept, and so is the undefended encoder, the reference of all.
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
    """Return those settings of a trade-off whose time per text was not measured."""
    return [point for point in found.points if point.milliseconds is None]


def attacked_settings(found: Tradeoff, task: str, reads: str = "words") -> list[Point]:
    """Return the settings with both a task's utility and the attackers' target measured.

    A defence of a classifier's training texts does not apply to a task without a classifier.
    """
    return [
        p
        for p in found.points
        if task in p.utility
        and p.read_by(reads)
        and not (reads == "membership" and task in p.as_without)
    ]


def leak_of(point: Point, reads: str = "words") -> Score:
    """Return the strongest attacker's score on a setting; NaN if none was tried."""
    found = point.strongest(reads)
    return found[1] if found else Score(math.nan)


def simultaneous_leaks(points: Sequence[Point], reads: str = "words") -> list[Score]:
    """Return the strongest attacker's score on each point, with simultaneous intervals.

    The least of K upper bounds of 97.5 % is too low in 1 - 0.975^K of all studies where K settings
    leak equally: 22 of 100 for K = 10. Here each end is at 1 - 0.025 / K, so that the upper end of
    the chosen setting holds in 97.5 of 100
    (`leakscope.core.metrics.simultaneous_intervals`). The strongest attacker is the one with the
    highest upper end.
    """
    if len(points) < 2:
        return [leak_of(point, reads) for point in points]
    names = [(i, name) for i, point in enumerate(points) for name in point.read_by(reads)]
    runs = [
        points[i].runs.get(reads, {}).get(name) or (points[i].read_by(reads)[name],)
        for i, name in names
    ]
    is_same = any(reads in point.same_sample for point in points)
    ends = simultaneous_intervals(runs, len(points), is_same_sample=is_same)
    read: list[list[Score]] = [[] for _ in points]
    for (i, name), interval in zip(names, ends, strict=True):
        score = points[i].read_by(reads)[name]
        cut = Interval(max(0.0, interval.low), min(100.0, interval.high))
        read[i].append(replace(score, ci95=cut) if score.has_interval else score)
    return [max(each, key=lambda score: (high(score), score.value)) for each in read]


def choose(found: Tradeoff, task: str, share: float = SHARE, reads: str = "words") -> Choice:
    """Choose the settings that keep a share of a task's utility and leak least of a target.

    Utility is judged by `keeps_share`, leakage by the upper interval end, corrected for the
    number of settings that keep enough.
    """
    base = found.undefended
    open_to = attacked_settings(found, task, reads)
    kept = [p for p in open_to if not _is_base(p) and keeps_share(p, base, task, share)]
    leaks = simultaneous_leaks(kept, reads)
    order = sorted(range(len(kept)), key=lambda i: high(leaks[i]))
    promising = next((kept[i] for i in order if promises(kept[i], reads)), None)
    measured = next((kept[i] for i in order if not promises(kept[i], reads)), None)
    alike = [kept[i] for i in sorted(order[1:]) if not leaks[i].is_resolved_from(leaks[order[0]])]
    corrected = {(p.defence, p.settings): leak for p, leak in zip(kept, leaks, strict=True)}
    return Choice(promising, measured, base, tuple(alike), reads, len(kept), corrected)


def setting_to_compare(found: Tradeoff, task: str, choice: Choice) -> Point:
    """Return the setting to compare with no defence: the chosen one, or else the least leaking."""
    if choice.best is not None:
        return choice.best
    others = [p for p in attacked_settings(found, task, choice.reads) if not _is_base(p)]
    return min(others, key=lambda p: high(leak_of(p, choice.reads)), default=choice.base)


def keeps_share(
    point: Point, base: Point, task: str, share: float, *, is_shown: bool = True
) -> bool:
    """Return whether a defence keeps a share of utility, significantly if `is_shown`.

    Decided by the lower interval end of the paired difference if measured, else of the utility
    itself. With `is_shown` false, the value alone decides.
    """
    at = low if is_shown else attrgetter("value")
    lost, change = allowed_loss(base, task, share), point.change.get(task)
    if change is not None:
        return at(change) >= -lost
    return at(point.utility[task]) >= base.utility[task].value - lost


def allowed_loss(base: Point, task: str, share: float) -> float:
    """Return how many points of utility may be lost if a share above guessing is kept."""
    useful = base.utility[task]
    return (1 - share) * (useful.value - useful.chance)


def unproven(
    found: Tradeoff, task: str, share: float = SHARE, reads: str = "words"
) -> Point | None:
    """Return the setting that keeps enough by value only and leaks significantly less than none.

    Its utility suffices by value but not by the lower interval end. None if there is no such
    setting. Leakage counts as in `choose`, corrected for the number of these settings.
    """
    base = found.undefended
    maybe = [
        p
        for p in attacked_settings(found, task, reads)
        if not _is_base(p)
        and keeps_share(p, base, task, share, is_shown=False)
        and not keeps_share(p, base, task, share)
    ]
    leaks = simultaneous_leaks(maybe, reads)
    less = [
        (high(leak), i)
        for i, leak in enumerate(leaks)
        if not beside_none(leak, leak_of(base, reads))
    ]
    return maybe[min(less)[1]] if less else None


def beside_none(leak: Score, base: Score) -> str:
    """Describe how leakage compares with no defence; "" if significantly less.

    Significantly less means that the intervals do not overlap.
    """
    if high(leak) < low(base):
        return ""
    if low(leak) > high(base):
        return "more than without a defence"
    return "not significantly less than without a defence"


def is_readable_and_worse(point: Point, base: Point, reads: str = "words") -> bool:
    """Return whether a defence releases tokens and leaks significantly more than none.

    Without a defence, the attacker has only a vector; released tokens can be read directly.
    """
    entry = entry_shown(point.defence)
    is_readable = entry.releases_tokens or is_of_network(point.defence)
    return is_readable and low(leak_of(point, reads)) > high(leak_of(base, reads))


def low(score: Score) -> float:
    """Return the lower interval end of a score; its value without an interval."""
    return score.ci95.low if score.has_interval else score.value


def high(score: Score) -> float:
    """Return the upper interval end of a score; its value without an interval."""
    return score.ci95.high if score.has_interval else score.value


def _is_base(point: Point) -> bool:
    """Return whether a point is that of the undefended encoder."""
    entry = DEFENCES.get(point.defence)
    return bool(entry and entry.is_baseline)


def recommended_defences(tradeoff: Tradeoff) -> tuple[DefenceSpec, ...]:
    """Return the vector defences that a trade-off recommends for searches."""
    found = choose(tradeoff, "BANKING77-search")
    points = [point for point in (found.promising, found.measured, *found.alike) if point]
    specs = [point.spec for point in points if {*stages_of(point.defence)} <= {*DEFENCES}]
    return tuple(dict.fromkeys(specs))


Ends = tuple[float, float]
"""A pair of utility and leakage."""


@dataclass(frozen=True)
class Frontier:
    """The settings that no other significantly dominates, for one task and one target.

    Each setting has a worst case (least useful, most leakage) and a best case, by its interval
    ends. Intervals of leakage hold for all settings together, those of utility for each setting
    alone. If the intervals hold, the least leakage at a given utility lies between the steps
    through the worst cases and those through the best cases.

    Attributes
    ----------
    members : tuple of Point
        Those that no other surely beats, the least useful first: none is at its worse ends as
        useful as this one at its better ends, and leaks no more.
    surely : tuple of (float, float)
        Corners of the steps through the worse ends: what some setting surely reaches.
    perhaps : tuple of (float, float)
        Corners of the steps through the better ends: what none surely reaches.
    """

    members: tuple[Point, ...]
    surely: tuple[Ends, ...]
    perhaps: tuple[Ends, ...]


def frontier(found: Tradeoff, task: str, reads: str = "words") -> Frontier:
    """Find the settings that no other significantly dominates, and the band of the frontier."""
    points = attacked_settings(found, task, reads)
    leaks = simultaneous_leaks(points, reads)
    worse = [(low(p.utility[task]), high(leak)) for p, leak in zip(points, leaks, strict=True)]
    better = [(high(p.utility[task]), low(leak)) for p, leak in zip(points, leaks, strict=True)]
    if not points:
        return Frontier((), (), ())
    start = min(useful for useful, _ in worse)
    kept = [
        p
        for p, best in zip(points, better, strict=True)
        if not any(other[0] >= best[0] and other[1] <= best[1] and other != best for other in worse)
    ]
    kept.sort(key=lambda p: p.utility[task].value)
    return Frontier(tuple(kept), steps(worse, start), steps(better, start))


def steps(ends: Sequence[Ends], start: float) -> tuple[Ends, ...]:
    """Return the corners of the least leakage by utility, from (utility, leakage) pairs.

    Parameters
    ----------
    ends : sequence of (float, float)
        Usefulness and leakage of each setting.
    start : float
        The utility at which the steps start.

    Examples
    --------
    >>> steps([(60.0, 10.0), (80.0, 30.0), (70.0, 40.0)], start=50.0)
    ((50.0, 10.0), (60.0, 10.0), (60.0, 30.0), (80.0, 30.0))
    """
    undominated: list[Ends] = []
    for useful, leaks in sorted(set(ends), key=lambda end: (-end[0], end[1])):
        if not undominated or leaks < undominated[-1][1]:
            undominated.append((useful, leaks))
    corners: list[Ends] = []
    at = start
    for useful, leaks in reversed(undominated):
        corners += [(at, leaks), (useful, leaks)]
        at = useful
    return tuple(corners)
