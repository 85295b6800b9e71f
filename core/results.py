"""What happened: frozen results, each with what is needed to repeat it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["EvaluationResult", "Interval", "RecoveredWord", "Recovery", "Scores"]


@dataclass(frozen=True, slots=True)
class RecoveredWord:
    """A word that the attacker reads from the vector, with the attack's own score of it.

    The scale of `score` belongs to the attack (a probability for the classifiers, a cosine for
    the probe, a coefficient for sparse coding): compare scores within one attack only.
    """

    word: str
    score: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """The words read from one vector, in the order in which the attack chose them."""

    words: tuple[RecoveredWord, ...]
    n_queries: int = 0
    """How many texts the attacker encoded to answer (0 for a one-pass attack)."""
    runners_up: tuple[RecoveredWord, ...] = ()
    """The next likeliest words, not answered."""

    @property
    def word_set(self) -> frozenset[str]:
        """The answered words as a set."""
        return frozenset(w.word for w in self.words)


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Token-set scores of one attack on n samples, in [0, 100] (C22 Eq. 4.6–4.8)."""

    n: int
    precision: float
    precision_ci95: Interval
    recall: float
    recall_ci95: Interval
    token_set_f1: float
    token_set_f1_ci95: Interval
    weighted_precision: float
    weighted_recall: float
    weighted_f1: float
    weighted_f1_ci95: Interval
    exact_set_rate: float
    n_names: int
    name_recall: float
    """Recall over capitalised words and numbers alone; NaN where the samples hold none."""
    mean_words_true: float
    mean_words_answered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """One attack against one encoder on one set of texts, with the prior-only baseline beside."""

    attack: str
    settings: dict[str, Any]
    encoder: str
    encoder_fingerprint: str
    texts: str
    seed: int
    scores: Scores
    baseline: Scores
    vocabulary_size: int
    vocabulary_coverage: float
    """Share of the targets' words that are in the attack's vocabulary (the rest is not scored)."""
    unrestricted_f1: float
    """F1 when words outside the vocabulary count as missed."""
    sentences_per_second: float
    device: str
    precision: str = "float32"
    """Of the encoder's matrix products."""
    backend: str = "torch"
    """The library that encodes many texts at once."""
    n_queries_mean: float = 0.0
    training: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-able nested dictionaries."""
        return asdict(self)
