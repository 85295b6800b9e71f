"""The settings that no other surely beats, and between what bounds the best trade-off lies.

Each setting has a worse and a better end: least useful and most leaking, or the reverse. Leakage
has intervals that hold for all settings together, usefulness each setting's own. Where the
intervals hold, the least leakage to be had at a usefulness lies between the steps through the worse
ends and those through the better ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.studies.tradeoff_choice import attacked, high, low, simultaneous_leaks
from core.studies.tradeoff_summary import Point, Tradeoff

__all__ = ["Ends", "Frontier", "frontier", "steps"]

Ends = tuple[float, float]
"""Usefulness and leakage."""


@dataclass(frozen=True)
class Frontier:
    """What no setting surely improves on, for one use and one thing that is read.

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
    """Return the settings that no other surely beats, and the band in which the best lie."""
    points = attacked(found, task, reads)
    leaks = simultaneous_leaks(points, reads)
    worse = [(low(p.utility[task]), high(leak)) for p, leak in zip(points, leaks, strict=True)]
    better = [(high(p.utility[task]), low(leak)) for p, leak in zip(points, leaks, strict=True)]
    if not points:
        return Frontier((), (), ())
    start = min(useful for useful, _ in worse)
    kept = [
        p
        for p, best in zip(points, better, strict=True)
        if not any(_beats(other, best) for other in worse)
    ]
    kept.sort(key=lambda p: p.utility[task].value)
    return Frontier(tuple(kept), steps(worse, start), steps(better, start))


def _beats(one: Ends, other: Ends) -> bool:
    """Whether one is as useful and leaks no more, and is not the same."""
    return one[0] >= other[0] and one[1] <= other[1] and one != other


def steps(ends: Sequence[Ends], start: float) -> tuple[Ends, ...]:
    """Return the corners of the least leakage by the usefulness that is asked for.

    Parameters
    ----------
    ends : sequence of (float, float)
        Usefulness and leakage of each setting.
    start : float
        The usefulness from which the steps are drawn.

    Examples
    --------
    >>> steps([(60.0, 10.0), (80.0, 30.0), (70.0, 40.0)], start=50.0)
    ((50.0, 10.0), (60.0, 10.0), (60.0, 30.0), (80.0, 30.0))
    """
    corners: list[Ends] = []
    at = start
    for useful, leaks in _unbeaten(ends):
        corners += [(at, leaks), (useful, leaks)]
        at = useful
    return tuple(corners)


def _unbeaten(ends: Sequence[Ends]) -> list[Ends]:
    """Return those that no other matches in both and beats in one, the least useful first."""
    found: list[Ends] = []
    for useful, leaks in sorted(set(ends), key=lambda end: (-end[0], end[1])):
        if not found or leaks < found[-1][1]:
            found.append((useful, leaks))
    return found[::-1]
