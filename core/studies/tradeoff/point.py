"""A point of the trade-off: utility and leakage of one defence at one strength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leakscope.core.defences.registry import guarantee_of
from leakscope.core.defences.setting import entry_shown, strength
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.specs import DefenceSpec

READS: Mapping[str, str] = {
    "words": "words recovered, F1",
    "attribute": "attribute inferred, %",
    "membership": "membership inferred, AUC",
}
"""The attackers' targets, each with its measure."""


@dataclass(frozen=True)
class Point:
    """The utility, leakage and cost of one defence at one strength.

    Attributes
    ----------
    utility : dict
        Task to score.
    leaks : dict
        Attacker to token-set F1; each knows the defence.
    token_inversion : Score or None
        Share of tokens that remain unchanged, if tokens are perturbed.
    change : dict
        Task to the paired difference from no defence; empty in results of earlier versions.
    provenances : tuple of Provenance
        The known provenances of the cells that it averages.
    attribute : dict
        Attacker to its top-1 accuracy on the attribute in per cent; empty if not attacked.
    membership : dict
        Attack to 100 × AUC of membership inference; empty if not attacked.
    as_without : frozenset of str
        Tasks that were not measured because the defence leaves their vectors unchanged.
    training_minutes : float or None
        Time of training the defence; 0 if nothing is trained, None if not timed.
    milliseconds : float or None
        Time per text of encoder and defence; None if not timed.
    milliseconds_alone : float or None
        Time per text of the encoder alone, timed in alternation; None if not timed so.
    all_words : dict
        Attacker to the F1 if words outside every vocabulary count as missed; empty in results of
        earlier versions.
    runs : dict
        `words`, `attribute` or `membership`, to attacker, to the scores of each seed.
    same_sample : frozenset of str
        The targets that every seed measured on the same texts or documents.
    """

    defence: str
    settings: tuple[tuple[str, Any], ...]
    utility: dict[str, Score]
    leaks: dict[str, Score]
    token_inversion: Score | None
    change: dict[str, Score] = field(default_factory=dict)
    provenances: tuple[Provenance, ...] = ()
    attribute: dict[str, Score] = field(default_factory=dict)
    membership: dict[str, Score] = field(default_factory=dict)
    as_without: frozenset[str] = frozenset()
    training_minutes: float | None = None
    milliseconds: float | None = None
    milliseconds_alone: float | None = None
    all_words: dict[str, Score] = field(default_factory=dict)
    releases: int = 1
    """Of the same text: several if a network was trained on a fresh copy in every epoch."""
    runs: Mapping[str, Mapping[str, tuple[Score, ...]]] = field(default_factory=dict)
    same_sample: frozenset[str] = frozenset()

    def read_by(self, what: str) -> dict[str, Score]:
        """Return each attacker's score on a target: `words`, `attribute` or `membership`."""
        found: dict[str, Score] = self.leaks if what == "words" else getattr(self, what)
        return found

    def strongest(self, what: str) -> tuple[str, Score] | None:
        """Return the attacker with the highest interval end, and its score; None if none was tried.

        By the upper end of the interval: the bound of a setting is then the bound of its strongest
        attacker, whichever that is. The greater value decides between equal ends.
        """
        found = self.read_by(what)
        return max(found.items(), key=upper_end) if found else None

    @property
    def attacker(self) -> str:
        """The attacker with the highest interval end of F1 on words."""
        return max(self.leaks.items(), key=upper_end)[0]

    @property
    def leakage(self) -> Score:
        """The F1 of the strongest attacker on words."""
        return self.leaks[self.attacker]

    @property
    def leakage_of_all_words(self) -> Score | None:
        """The strongest attacker's F1 if words outside its vocabulary count as missed, or None."""
        return self.all_words.get(self.attacker)

    @property
    def leaves_vectors(self) -> bool:
        """Whether the defence leaves vectors unchanged, so that they leak as without it."""
        return entry_shown(self.defence).acts_on == "model"

    @property
    def spec(self) -> DefenceSpec:
        """The defence with its settings."""
        return DefenceSpec.of(self.defence, dict(self.settings))

    @property
    def kind(self) -> str:
        """The settings other than the strength, such as `against words`; "" without any.

        One line of a figure shows one kind.
        """
        known = entry_shown(self.defence).strengths
        return strength(self.defence, {k: v for k, v in self.settings if k not in known})

    @property
    def label(self) -> str:
        """The strength in words, such as `η 75`."""
        return strength(self.defence, dict(self.settings))


def upper_end(item: tuple[str, Score]) -> tuple[float, float]:
    """Return the sort key of attackers: upper interval end, then value."""
    score = item[1]
    return (score.ci95.high if score.has_interval else score.value), score.value


def promises(point: Point, reads: str = "words") -> bool:
    """Return whether a setting has a guarantee for an attackers' target.

    A defence of training texts guarantees nothing about vectors, and a defence of vectors or texts
    nothing about membership.
    """
    entry = entry_shown(point.defence)
    if (entry.acts_on == "model") != (reads == "membership"):
        return False
    spec = DefenceSpec.of(point.defence, dict(point.settings))
    return bool(entry.guarantee and guarantee_of(spec))


_UNTIMED = "not timed"


def describe_minutes(point: Point) -> str:
    """Describe how long a defence was trained."""
    minutes = point.training_minutes
    if minutes is None:
        return _UNTIMED
    return _format_time(minutes, "min") if minutes else "no training"


def describe_milliseconds(point: Point) -> str:
    """Describe the time per text of encoder and defence."""
    return _UNTIMED if point.milliseconds is None else _format_time(point.milliseconds, "ms")


def _format_time(value: float, unit: str) -> str:
    """Format a time with its unit, with two significant digits below 10."""
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
