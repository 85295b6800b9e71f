"""The Pareto frontier of the trade-off: settings not significantly dominated, and its band.

Each setting has a worst case (least useful, most leakage) and a best case, by its interval ends.
Intervals of leakage hold for all settings together, those of utility for each setting alone. If
the intervals hold, the least leakage at a given utility lies between the steps through the worst
cases and those through the best cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leakscope.core.studies.tradeoff.choice import attacked_settings, high, low, simultaneous_leaks
from leakscope.core.studies.tradeoff.point import Point
from leakscope.core.studies.tradeoff.summary import Tradeoff

Ends = tuple[float, float]
"""A pair of utility and leakage."""


@dataclass(frozen=True)
class Frontier:
    """The settings that no other significantly dominates, for one task and one target.

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
    """Return the settings that no other significantly dominates, and the band of the frontier."""
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
        if not any(_dominates(other, best) for other in worse)
    ]
    kept.sort(key=lambda p: p.utility[task].value)
    return Frontier(tuple(kept), steps(worse, start), steps(better, start))


def _dominates(one: Ends, other: Ends) -> bool:
    """Return whether one pair is at least as useful and leaks no more, and is not equal."""
    return one[0] >= other[0] and one[1] <= other[1] and one != other


def steps(ends: Sequence[Ends], start: float) -> tuple[Ends, ...]:
    """Return the corners of the least leakage as a step function of utility.

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
    corners: list[Ends] = []
    at = start
    for useful, leaks in _undominated(ends):
        corners += [(at, leaks), (useful, leaks)]
        at = useful
    return tuple(corners)


def _undominated(ends: Sequence[Ends]) -> list[Ends]:
    """Return the pairs that no other dominates, the least useful first."""
    found: list[Ends] = []
    for useful, leaks in sorted(set(ends), key=lambda end: (-end[0], end[1])):
        if not found or leaks < found[-1][1]:
            found.append((useful, leaks))
    return found[::-1]
