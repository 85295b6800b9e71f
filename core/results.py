"""What happened: frozen results, each with what is needed to repeat it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

__all__ = [
    "EvaluationResult",
    "Interval",
    "RecoveredWord",
    "Recovery",
    "Score",
    "Scores",
    "Sentence",
    "SentenceStep",
]


@dataclass(frozen=True, slots=True)
class RecoveredWord:
    """A word that the attacker reads from the vector, with the attack's own score of it.

    The scale of `score` belongs to the attack (a probability for the classifiers, a cosine for
    the probe, a coefficient for sparse coding): compare scores within one attack only.
    """

    word: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceStep:
    """The best sentence that a search had, and after how many queries."""

    n_queries: int
    text: str
    cosine: float
    """Of its vector with the one under attack; NaN where it was not encoded."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that was read, its words in their order."""

    text: str
    cosine: float
    """Of its vector with the one under attack; NaN where it was not encoded."""
    confidence: float = math.nan
    """What share of such sentences is right, as the attack was calibrated; NaN where it was not."""
    words: tuple[RecoveredWord, ...] = ()
    """Its words in order, each with what share of such is right; empty where not calibrated."""
    steps: tuple[SentenceStep, ...] = ()
    """What stood there before, first to last."""

    def after(self, n_queries: int) -> SentenceStep:
        """Return what the search had after so many queries."""
        start = SentenceStep(0, self.text, self.cosine)
        known = [step for step in self.steps if step.n_queries <= n_queries]
        return known[-1] if known else start


@dataclass(frozen=True, slots=True)
class Recovery:
    """The words read from one vector, in the order in which the attack chose them."""

    words: tuple[RecoveredWord, ...]
    n_queries: int = 0
    """How many texts the attacker encoded to answer (0 for a one-pass attack)."""
    runners_up: tuple[RecoveredWord, ...] = ()
    """The next likeliest words, not answered."""
    sentence: Sentence | None = None
    """The text itself, where the attack reads one."""

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

    @property
    def is_known(self) -> bool:
        """Whether there is an interval: one of zero width says nothing, and is not printed."""
        return self.high - self.low > 1e-9 * max(1.0, abs(self.high))  # below, it is rounding

    def decimals(self, least: int) -> int:
        """Return how many decimals to print, up to 4 more than `least`, so that the ends differ.

        Examples
        --------
        >>> Interval(99.95, 100).decimals(0), Interval(62, 65).decimals(0)
        (2, 0)
        """
        enough = (d for d in range(least, least + 4) if round(self.low, d) < round(self.high, d))
        return next(enough, least + 4) if self.is_known else least

    def said(self, decimals: int = 1) -> str:
        """Return the bounds for a sentence.

        Beside a value, take both from `Score.parts`: an interval alone may need more decimals.

        Examples
        --------
        >>> Interval(70.04, 91.3).said(), NO_INTERVAL.said()
        ('70.0 to 91.3', 'not known')
        """
        return self.printed(self.decimals(decimals))

    def printed(self, decimals: int) -> str:
        """Return the bounds with so many decimals, also where they do not differ by them.

        Examples
        --------
        >>> Interval(70.04, 70.041).printed(1)
        '70.0 to 70.0'
        """
        if not self.is_known:
            return "not known"
        return f"{self.low:.{decimals}f} to {self.high:.{decimals}f}"


NO_INTERVAL = Interval(math.nan, math.nan)
"""Stands where none was computed."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number that was measured: with its doubt, what it is of, and what guessing reaches.

    Attributes
    ----------
    value : float
        In the unit of its measure, mostly per cent; NaN where nothing could be counted.
    ci95 : Interval
        Its interval, of 95 % unless it says otherwise; NO_INTERVAL where none was computed.
    n : int
        Independent samples that the interval is of.
    chance : float
        What guessing reaches, in the same unit; NaN where it is not known.
    n_seeds : int
        Runs that the value is a mean of.
    n_trials : int or None
        Trials that lie within the samples, where a sample holds several.
    """

    value: float
    ci95: Interval = NO_INTERVAL
    n: int = 0
    chance: float = math.nan
    n_seeds: int = 1
    n_trials: int | None = None

    @property
    def has_interval(self) -> bool:
        """Whether an interval was computed."""
        return not math.isnan(self.ci95.low)

    def said(self, decimals: int = 1, *, is_bold: bool = False, with_n: bool = False) -> str:
        """Return the number with its interval, the way that every table and page has it.

        Both have the same decimals, as many as the ends of the interval need to differ: a number
        is never printed outside its interval, nor an interval as one number.

        Examples
        --------
        >>> Score(83.2, Interval(70.04, 91.3), 40).said()
        '83.2 [70.0, 91.3]'
        >>> Score(83.2, Interval(70.04, 91.3), 40).said(0, is_bold=True, with_n=True)
        '**83** [70, 91], n 40'
        >>> Score(99.98, Interval(99.95, 100), 40).said()
        '99.98 [99.95, 100.00]'
        >>> Score(25, Interval(25, 25), 1).said()
        '25.0'
        >>> Score(float("nan"), Interval(0, 100)).said()
        '–'
        """
        if math.isnan(self.value):
            return "–"
        mark, decimals = "**" if is_bold else "", self.ci95.decimals(decimals)
        told = f"{mark}{self.value:.{decimals}f}{mark}"
        if self.ci95.is_known:
            told += f" [{self.ci95.low:.{decimals}f}, {self.ci95.high:.{decimals}f}]"
        return f"{told}, n {self.n:,}" if with_n else told

    def parts(self, decimals: int = 1) -> tuple[str, str]:
        """Return the number and its interval apart, with the decimals that `said` prints.

        Examples
        --------
        >>> Score(99.98, Interval(99.95, 100), 40).parts(0)
        ('99.98', '99.95 to 100.00')
        >>> Score(0, Interval(0, 0.00001), 40).parts(0)
        ('0.0000', '0.0000 to 0.0000')
        >>> Score(25, Interval(25, 25), 1).parts(0)
        ('25', 'not known')
        """
        decimals = self.ci95.decimals(decimals)
        return f"{self.value:.{decimals}f}", self.ci95.printed(decimals)

    def in_percent(self) -> Score:
        """Return a share of 1 in per cent.

        Examples
        --------
        >>> Score(0.5, Interval(0.25, 0.75), 40).in_percent().said()
        '50.0 [25.0, 75.0]'
        """
        ends = Interval(100 * self.ci95.low, 100 * self.ci95.high, self.ci95.level)
        return replace(self, value=100 * self.value, ci95=ends, chance=100 * self.chance)

    def is_resolved_from(self, other: Score) -> bool:
        """Return whether the intervals of two scores share no value.

        Stricter than a paired test, which needs the samples. Without an interval nothing is
        resolved.
        """
        return self.ci95.low > other.ci95.high or other.ci95.low > self.ci95.high

    def stands(self, even: float = 0.0) -> str:
        """Return what a difference and its interval allow to be said, or a ratio where even is 1.

        Examples
        --------
        >>> Score(0.02, Interval(-0.01, 0.05), 9, 0.0).stands()
        'not told apart'
        """
        if self.ci95.low > even:
            return "more"
        return "less" if self.ci95.high < even else "not told apart"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form; a value of NaN becomes None."""
        stored: dict[str, Any] = {"value": None if math.isnan(self.value) else self.value}
        if self.has_interval:
            stored["ci95"] = [self.ci95.low, self.ci95.high]
        stored["n"] = self.n
        if not math.isnan(self.chance):
            stored["chance"] = self.chance
        if self.n_seeds != 1:
            stored["n_seeds"] = self.n_seeds
        if self.n_trials is not None:
            stored["n_trials"] = self.n_trials
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Score:
        """Restore what `to_dict` returned.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is something else.
        """
        value = float("nan") if stored["value"] is None else float(stored["value"])
        ends = stored.get("ci95")
        interval = NO_INTERVAL if ends is None else Interval(*map(float, ends))
        n_trials = stored.get("n_trials")
        return cls(
            value,
            interval,
            int(stored["n"]),
            float(stored.get("chance", math.nan)),
            int(stored.get("n_seeds", 1)),
            None if n_trials is None else int(n_trials),
        )

    def to_record(self, measure: str) -> dict[str, Any]:
        """Return number and interval as records spell them: MEASURE and MEASURE_ci95, if any."""
        ends = [self.ci95.low, self.ci95.high] if self.has_interval else None
        return {measure: self.value, f"{measure}_ci95": ends}

    @classmethod
    def of_record(cls, record: Mapping[str, Any], measure: str, chance: str = "chance") -> Score:
        """Restore a score from a record that spells it as MEASURE and MEASURE_ci95, beside its n.

        Parameters
        ----------
        chance : str
            What the record calls what guessing reaches, if it knows it.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is something else.
        """
        stored = {"value": record[measure], "ci95": record[f"{measure}_ci95"], "n": record["n"]}
        return cls.from_dict(stored | ({"chance": record[chance]} if chance in record else {}))


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
    n_documents: int | None = None
    """Documents that the samples come from, of which intervals are; None where each is its own."""
    n_distinct: int | None = None
    """Distinct texts among the samples, of which intervals are; None where it was not counted."""
    n_numbers: int = 0
    number_recall: float = math.nan
    """Recall over words that hold a digit; NaN where the samples hold none."""
    n_rare: int = 0
    rare_recall: float = math.nan
    """Recall over the rarer half of the attack's vocabulary; NaN where the samples hold none."""

    @property
    def unit(self) -> str:
        """What intervals are of: `document` or `sentence`."""
        return "sentence" if self.n_documents is None else "document"

    def score(self, measure: str, chance: float = math.nan) -> Score:
        """Return one of the numbers with its interval, beside what guessing reaches."""
        return Score(
            getattr(self, measure), getattr(self, f"{measure}_ci95", NO_INTERVAL), self.n, chance
        )


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
    unrestricted: Score
    """F1 when words outside the vocabulary count as missed."""
    n_words: int
    """Distinct words of each text but for stop words, summed over texts: read and unread."""
    n_unread: int
    """How many of these words stand beyond what the encoder reads: no score counts them."""
    n_texts_cut: int
    """How many texts have such words."""
    sentences_per_second: float
    device: str
    precision: str = "float32"
    """Of the encoder's matrix products."""
    backend: str = "torch"
    """The library that encodes many texts at once."""
    n_queries_mean: float = 0.0
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def unrestricted_f1(self) -> float:
        """F1 when words outside the vocabulary count as missed, without its interval."""
        return self.unrestricted.value

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-able nested dictionaries."""
        return asdict(self)
