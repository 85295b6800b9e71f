"""Find the encoder that leaks least at equal utility, and check the thesis's ordering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, product

from leakscope.core.results import Score
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion import classification
from leakscope.core.studies.inversion import representations as encoders
from leakscope.core.studies.inversion.classification import VIEWS
from leakscope.core.studies.inversion.representation_summary import YOURS, Leak, Point

ORDER = (("tfidf",), ("hashing",), ("lsa_tfidf", "lsa_hashing"), ("doc2vec",), ("minilm",))
"""From most to least leakage, after Corò (2022), §5.2.1."""


@dataclass(frozen=True)
class LeastLeaking:
    """The encoder that leaks least among those with the best utility, and its rivals.

    Attributes
    ----------
    best : Point
        Under the attack that recovers most from it.
    as_useful : tuple of Point
        The encoders whose utility interval reaches that of the best, `best` among them, from least
        to most leakage.
    tied : tuple of Point
        Those of them whose interval of leakage overlaps that of `best`.
    leak_less : tuple of Point
        Encoders with less utility whose leakage interval is below that of `best`.
    n_compared : int
        Encoders whose utility was measured.
    """

    best: Point
    as_useful: tuple[Point, ...]
    tied: tuple[Point, ...]
    leak_less: tuple[Point, ...]
    n_compared: int


class Verdict(StrEnum):
    """Whether two intervals confirm an order, contradict it, or overlap."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not resolvable: the intervals overlap"


@dataclass(frozen=True)
class Comparison:
    """One step of the thesis's ordering: two measured leaks, a verdict, the thesis's scores."""

    more: Leak
    less: Leak
    verdict: Verdict
    paper: tuple[float, float]


@dataclass(frozen=True)
class PaperPoint:
    """The thesis's scores of one encoder: macro-F1, and F1 of the words that MSP recovered."""

    encoder: str
    useful: float
    leak: float


def strongest(points: Sequence[Point]) -> list[Point]:
    """Return one point per encoder: that of the attack with the highest F1."""
    found: dict[str, Point] = {}
    for point in points:
        known = found.setdefault(point.leak.encoder, point)
        if point.leak.f1.value > known.leak.f1.value:
            found[point.leak.encoder] = point
    return list(found.values())


def least_leaking(points: Sequence[Point]) -> LeastLeaking | None:
    """Find the encoder that leaks least at the best utility; None if no utility was measured."""
    worst = [(point, point.useful) for point in strongest(points) if point.useful]
    if not worst:
        return None
    top = max((useful for _, useful in worst), key=lambda score: score.value)
    equal = [point for point, useful in worst if not useful.is_resolved_from(top)]
    equal.sort(key=lambda point: point.leak.f1.value)
    best = equal[0].leak.f1
    return LeastLeaking(
        equal[0],
        tuple(equal),
        tuple(point for point in equal[1:] if not point.leak.f1.is_resolved_from(best)),
        tuple(point for point, _ in worst if point.leak.f1.ci95.high < best.ci95.low),
        len(worst),
    )


@dataclass(frozen=True)
class OwnVerdict:
    """A user's encoder compared with the least leaking shipped one that is as useful.

    Attributes
    ----------
    own : Point
        Under the attack that recovers most from it.
    rival : Point or None
        Of the shipped encoders whose utility is not significantly lower, the one that leaks
        least; None where there is none, or where either utility was not measured.
    n_compared : int
        Shipped encoders whose utility was measured.
    """

    own: Point
    rival: Point | None
    n_compared: int

    @property
    def leaks_more(self) -> bool:
        """Whether the user's encoder leaks significantly more than the rival."""
        return self.rival is not None and self.own.leak.f1.ci95.low > self.rival.leak.f1.ci95.high

    @property
    def leaks_less(self) -> bool:
        """Whether the user's encoder leaks significantly less than the rival, the least leaking."""
        return self.rival is not None and self.own.leak.f1.ci95.high < self.rival.leak.f1.ci95.low


def judge_own(points: Sequence[Point]) -> list[OwnVerdict]:
    """Compare each of the user's encoders with the least leaking rival, most leaking first."""
    worst = strongest(points)
    own = [point for point in worst if point.leak.encoder.startswith(YOURS)]
    shipped = [point for point in worst if point not in own and point.useful]

    def rival_of(useful: Score) -> Point | None:
        """Return the least leaking shipped encoder whose utility is not significantly lower."""
        as_useful = [p for p in shipped if p.useful and p.useful.ci95.high >= useful.ci95.low]
        return min(as_useful, key=lambda point: point.leak.f1.value, default=None)

    own.sort(key=lambda point: -point.leak.f1.value)
    return [
        OwnVerdict(point, None if point.useful is None else rival_of(point.useful), len(shipped))
        for point in own
    ]


def compare_pairs(points: Sequence[Point], domain: str) -> list[Comparison]:
    """Compare the leakage of neighbours in `ORDER` with the thesis's order, under each attack."""
    leaks = {(p.leak.attack, p.leak.encoder): p.leak for p in points}
    place = list(DOMAINS).index(domain)
    return [
        Comparison(
            leaks[attack, more],
            leaks[attack, less],
            _verdict(leaks[attack, more].f1, leaks[attack, less].f1),
            (encoders.PAPER[more][place], encoders.PAPER[less][place]),
        )
        for attack in dict.fromkeys(attack for attack, _ in leaks)
        for left, right in pairwise(ORDER)
        for more, less in product(left, right)
        if (attack, more) in leaks and (attack, less) in leaks
    ]


def _verdict(more: Score, less: Score) -> Verdict:
    """Return HOLDS if the first score is significantly higher, FAILS if lower, otherwise OPEN."""
    if not more.is_resolved_from(less):
        return Verdict.OPEN
    return Verdict.HOLDS if more.value > less.value else Verdict.FAILS


def paper_points(chosen: Sequence[str], domain: str, view: str) -> list[PaperPoint]:
    """Return the thesis's utility and leakage of encoders, given by name (C22, Tables 5.1, 5.2).

    Its encoders are fitted cross-domain in both domains of the inversion, so that the
    utility is the cross-domain one.
    """
    place, column = list(DOMAINS).index(domain), VIEWS.index(view)
    return [
        PaperPoint(name, classification.PAPER[name, "cross"][column], leak[place])
        for name, leak in encoders.PAPER.items()
        if name in chosen
    ]
