"""What was measured near an η: how useful vectors are there, and what is still read of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.defences.registry import DEFENCES
from core.said import leak_said
from core.studies.tradeoff_summary import Point, Tradeoff

__all__ = ["NEAR", "Outlook", "kept_of", "measured_etas", "outlook", "scales_said"]

NEAR = 1.2
"""A measured η within this factor says something of another; one farther away does not."""


@dataclass(frozen=True)
class Outlook:
    """A mechanism's measured point that is nearest to an η.

    Attributes
    ----------
    point : Point or None
        None where the mechanism was not measured at all.
    measured : float
        Its η; NaN where there is none.
    """

    mechanism: str
    eta: float
    point: Point | None
    measured: float
    undefended: Point

    @property
    def is_near(self) -> bool:
        """Whether what was measured says something of the η that was asked for."""
        return self.point is not None and max(self.eta, self.measured) <= NEAR * min(
            self.eta, self.measured
        )

    @property
    def kept(self) -> dict[str, float]:
        """How much of the way from guessing to no defence each task keeps, 1 being all of it."""
        if self.point is None:
            return {}
        return kept_of(self.point, self.undefended)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is left, what is read and where that was measured, for whoever has to decide."""
        title = DEFENCES[self.mechanism].title
        if self.point is None:
            return (f"{title} was not measured in the trade-off: what it leaves is not known.",)
        if not self.is_near:
            return (
                f"Nothing was measured near η = {self.eta:g}: what is left of usefulness, and what "
                f"an attacker still reads, is not known here. The nearest measured η of {title} is "
                f"{self.measured:g}.",
            )
        return (self._where(), self._useful(), self._read())

    @property
    def cost(self) -> str:
        """What noise as strong as this costs; empty where neither it nor less noise was measured.

        More noise than was measured costs at least as much.
        """
        if self.point is None or not (self.is_near or self.eta < self.measured):
            return ""
        return f"{self._measured_at(is_already=self.eta < self.measured)}: {self._useful()}"

    @property
    def leak(self) -> str:
        """What is read through noise as weak as this; empty where neither it nor more was measured.

        Less noise than was measured leaks at least as much.
        """
        if self.point is None or not (self.is_near or self.eta > self.measured):
            return ""
        told = f"{self._measured_at(is_already=self.eta > self.measured)}: {self._read()}"
        if self.point.leakage.ci95.low <= self.undefended.leakage.ci95.high:
            return told
        return f"{told} That is more than from vectors without a defence: what is released is text."

    def _measured_at(self, *, is_already: bool) -> str:
        word = "Already at" if is_already and not self.is_near else "At"
        return f"{word} η = {self.measured:g}, as measured in the trade-off"

    def _where(self) -> str:
        if math.isclose(self.eta, self.measured):
            return f"Measured at this η, in the trade-off of {DEFENCES[self.mechanism].title}:"
        return (
            f"Measured at η = {self.measured:g}, the nearest in the trade-off of "
            f"{DEFENCES[self.mechanism].title}:"
        )

    def _useful(self) -> str:
        kept = self.kept
        mean = sum(kept.values()) / len(kept)
        scores = self.point.utility if self.point else {}
        lost = [task for task in kept if scores[task].ci95.low <= scores[task].chance]
        told = f"on {len(lost)} of {len(kept)} tasks it cannot be told from guessing"
        return (
            f"**Useful**: {_share(mean)} of the way from guessing to no defence is left, mean of "
            f"{len(kept)} tasks ({_share(min(kept.values()))} to {_share(max(kept.values()))}); "
            f"{told if lost else 'on every task it is better than guessing'}."
        )

    def _read(self) -> str:
        assert self.point is not None
        leak, before = self.point.leakage, self.undefended.leakage
        told = (
            f"**Still read**: the strongest attacker measured reads {leak_said(leak)}, without a "
            f"defence {before.said(0)}, by guessing {leak.chance:.0f}"
        )
        back = self.point.token_inversion
        return f"{told}; {back.said(0)} % of the tokens come back." if back else f"{told}."


def kept_of(point: Point, undefended: Point) -> dict[str, float]:
    """Return how much of the way from guessing to no defence a point keeps, 1 being all of it."""
    base = undefended.utility
    return {
        task: (score.value - base[task].chance) / (base[task].value - base[task].chance)
        for task, score in point.utility.items()
        if base[task].value > base[task].chance
    }


def outlook(found: Tradeoff, mechanism: str, eta: float) -> Outlook:
    """Return the measured point of a mechanism whose η is nearest, by ratio."""
    points = measured_etas(found, mechanism)
    if not points:
        return Outlook(mechanism, eta, None, math.nan, found.undefended)
    near = min(points, key=lambda measured: abs(math.log(measured / eta)))
    return Outlook(mechanism, eta, points[near], near, found.undefended)


def measured_etas(found: Tradeoff, mechanism: str) -> dict[float, Point]:
    """Return the points of a mechanism by their η, ascending."""
    points = {
        float(dict(point.settings)["eta"]): point
        for point in found.points
        if point.defence == mechanism and "eta" in dict(point.settings)
    }
    return dict(sorted(points.items()))


def scales_said(found: Tradeoff, mechanism: str) -> str:
    """Return that the other mechanisms lie on other scales, with the η measured of each."""
    told = [
        f"{DEFENCES[name].title} was measured "
        + (f"from η {etas[0]:g} to {etas[-1]:g}" if len(etas) > 1 else f"at η {etas[0]:g}")
        for name in dict.fromkeys(point.defence for point in found.points)
        if name in DEFENCES  # no chain, and nothing that is trained
        and name != mechanism
        and "eta" in DEFENCES[name].kind.__dataclass_fields__
        and (etas := list(measured_etas(found, name)))
    ]
    title = DEFENCES[mechanism].title
    return (
        f"Every η here is for **{title}**, which returns tokens. The other mechanisms lie on other "
        f"scales, and these rules say nothing of them: {'; '.join(told)}."
    )


def _share(part: float) -> str:
    return f"{part:.0%}".replace("-", "−")
