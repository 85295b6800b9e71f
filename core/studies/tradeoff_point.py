"""A point of the trade-off: a defence at one strength, what it leaves and what is read through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.defences.entries import DefenceEntry
from core.defences.registry import entry_of
from core.errors import InvalidInputError
from core.results import Score
from core.specs import DefenceSpec
from core.studies.provenance import Provenance

__all__ = ["READS", "Point", "known_entry", "strength", "upper_end"]

READS: Mapping[str, str] = {
    "words": "words recovered, F1",
    "attribute": "attribute inferred, %",
    "membership": "members told, AUC",
}
"""What an attacker may be after, and the unit in which it is counted."""


@dataclass(frozen=True)
class Point:
    """A defence at one strength.

    Attributes
    ----------
    utility : dict
        Task to score.
    leaks : dict
        Attacker to token-set F1; each knows the defence.
    token_inversion : Score or None
        Share of tokens that come back, where tokens are perturbed.
    change : dict
        Task to the difference to no defence on the same texts; empty in what earlier versions
        measured.
    provenances : tuple of Provenance
        Of the cells that it is a mean of, where they tell.
    attribute : dict
        Attacker to the per cent of targets whose attribute it names first; empty where no
        attribute was attacked.
    membership : dict
        Attack to 100 × AUC of telling training texts from others; empty where none was tried.
    as_without : frozenset of str
        Tasks for which nothing of it was measured, since it leaves their vectors as they are.
    training_minutes : float or None
        Of the defence's own training; 0 where nothing is trained, None where it was not timed.
    milliseconds : float or None
        A text, encoder and defence; None where it was not timed.
    milliseconds_alone : float or None
        What the encoder alone took, in turn with it; None where the two were not timed so.
    all_words : dict
        Attacker to the F1 in which words outside every vocabulary count as missed; empty in what
        earlier versions measured.
    runs : dict
        `words`, `attribute` or `membership` to attacker to the scores of each seed.
    same_sample : frozenset of str
        Which of these every seed measured on the same texts or documents.
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
    """Of the same text: more where a network was trained on a fresh copy of it in every epoch."""
    runs: Mapping[str, Mapping[str, tuple[Score, ...]]] = field(default_factory=dict)
    same_sample: frozenset[str] = frozenset()

    def read_by(self, what: str) -> dict[str, Score]:
        """Return what each attacker reads who is after `words`, `attribute` or `membership`."""
        found: dict[str, Score] = self.leaks if what == "words" else getattr(self, what)
        return found

    def strongest(self, what: str) -> tuple[str, Score] | None:
        """Return the attacker who may read most, and what it reads; None where none was tried.

        By the upper end of the interval: the bound of a setting is then the bound of its strongest
        attacker, whichever that is. The greater value decides between equal ends.
        """
        found = self.read_by(what)
        return max(found.items(), key=upper_end) if found else None

    @property
    def attacker(self) -> str:
        """The attacker who may read most words."""
        return max(self.leaks.items(), key=upper_end)[0]

    @property
    def leakage(self) -> Score:
        """What the strongest attacker reads of the words."""
        return self.leaks[self.attacker]

    @property
    def leakage_of_all_words(self) -> Score | None:
        """The same where words outside every vocabulary count as missed; None where not told."""
        return self.all_words.get(self.attacker)

    @property
    def leaves_vectors(self) -> bool:
        """Whether vectors stay as they are, so that they tell what they tell without a defence."""
        entry = known_entry(self.defence)
        return bool(entry and entry.acts_on == "model")

    @property
    def spec(self) -> DefenceSpec:
        """The defence at its settings."""
        return DefenceSpec.of(self.defence, dict(self.settings))

    @property
    def kind(self) -> str:
        """What tells it from others of its defence besides its strength, such as `against words`.

        Empty where nothing does. One line of a figure holds one kind.
        """
        entry = known_entry(self.defence)
        known = entry.strengths if entry else {}
        return strength(self.defence, {k: v for k, v in self.settings if k not in known})

    @property
    def label(self) -> str:
        """The strength in words, such as `η 75`."""
        return strength(self.defence, dict(self.settings))


def upper_end(item: tuple[str, Score]) -> tuple[float, float]:
    """Return by what attackers are compared: the upper end, then the value."""
    score = item[1]
    return (score.ci95.high if score.has_interval else score.value), score.value


def known_entry(defence: str) -> DefenceEntry | None:
    """Return what is known of a defence or chain; rows of former days may name others."""
    try:
        return entry_of(defence)
    except InvalidInputError:
        return None


def strength(defence: str, settings: Mapping[str, Any]) -> str:
    """Return the settings of a defence in a few words.

    Examples
    --------
    >>> strength("text_to_text", {"eta": 75.0}), strength("truncation", {"dimension": 96})
    ('η 75', 'to 96 dimensions')
    >>> strength("binary", {}), strength("text_to_text+int8", {"text_to_text.eta": 60.0})
    ('', 'η 60')
    >>> strength("adversarial", {"against": "words", "weight": 0.3})
    'against words, λ 0.3'
    """
    entry = known_entry(defence)
    known = entry.strengths if entry else {}
    return ", ".join(
        known[k].named(v) if k in known else f"{k.rpartition('.')[2]} {v}"
        for k, v in settings.items()
    )
