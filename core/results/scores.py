"""Result types: recovered words and sentences, scores with intervals, evaluation results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class RecoveredWord:
    """A word that the attacker recovered from a vector, with the attack's score for it.

    The scale of `score` belongs to the attack (a probability for the classifiers, a cosine for
    the probe, a coefficient for sparse coding): compare scores within one attack only.
    """

    word: str
    score: float


@dataclass(frozen=True, slots=True)
class SentenceStep:
    """The best sentence of a search after a given number of queries."""

    n_queries: int
    text: str
    cosine: float
    """Cosine of its vector to the vector under attack; NaN if it was not encoded."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that an attack reconstructed from a vector, with the steps of the search."""

    text: str
    cosine: float
    """Of its vector with the one under attack; NaN where it was not encoded."""
    confidence: float = math.nan
    """Calibrated share of such sentences that are right; NaN if not calibrated."""
    words: tuple[RecoveredWord, ...] = ()
    """Its words in order, each with the share of such words that are right; empty if unknown."""
    steps: tuple[SentenceStep, ...] = ()
    """The earlier sentences of the search, first to last."""

    def after(self, n_queries: int) -> SentenceStep:
        """Return the search's best step within n queries; the final sentence if there is none."""
        start = SentenceStep(0, self.text, self.cosine)
        known = [step for step in self.steps if step.n_queries <= n_queries]
        return known[-1] if known else start


@dataclass(frozen=True, slots=True)
class Recovery:
    """The words that an attack recovered from one vector, in the order in which it chose them."""

    words: tuple[RecoveredWord, ...]
    n_queries: int = 0
    """How many texts the attacker encoded to answer (0 for a one-pass attack)."""
    runners_up: tuple[RecoveredWord, ...] = ()
    """The next most probable words, not part of the answer."""
    sentence: Sentence | None = None
    """The reconstructed sentence, if the attack returns one."""

    @property
    def word_set(self) -> frozenset[str]:
        """The recovered words, without their scores, as a set of strings."""
        return frozenset(w.word for w in self.words)

    def __str__(self) -> str:
        """Return the recovered words as a string, separated by commas.

        Examples
        --------
        >>> print(Recovery((RecoveredWord("minister", 0.9), RecoveredWord("berlin", 0.6))))
        minister, berlin
        """
        return ", ".join(found.word for found in self.words)


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float
    level: float = 0.95

    @property
    def is_known(self) -> bool:
        """Whether the interval is known: one of zero width counts as none and is not printed."""
        return self.high - self.low > 1e-9 * max(1.0, abs(self.high))  # below, it is rounding

    def decimals(self, least: int) -> int:
        """Return how many decimals, from `least` to `least + 4`, make the printed ends differ.

        Examples
        --------
        >>> Interval(99.95, 100).decimals(0), Interval(62, 65).decimals(0)
        (2, 0)
        """
        enough = (d for d in range(least, least + 4) if round(self.low, d) < round(self.high, d))
        return next(enough, least + 4) if self.is_known else least

    def format(self, decimals: int = 1) -> str:
        """Format the interval as `70.0–91.3`, with the decimals that its ends need to differ.

        Beside a value, take both from `Score.parts`: an interval alone may need more decimals.

        Examples
        --------
        >>> Interval(70.04, 91.3).format(), NO_INTERVAL.format()
        ('70.0–91.3', 'not known')
        """
        return self.printed(self.decimals(decimals))

    def printed(self, decimals: int) -> str:
        """Format the interval as `70.0–91.3` with exactly the given number of decimals.

        Examples
        --------
        >>> Interval(70.04, 70.041).printed(1), Interval(-3, 5).printed(0)
        ('70.0–70.0', '-3 to 5')
        """
        if not self.is_known:
            return "not known"
        dash = " to " if self.low < 0 else "–"
        return f"{self.low:.{decimals}f}{dash}{self.high:.{decimals}f}"


NO_INTERVAL = Interval(math.nan, math.nan)
"""The interval of a score for which none was computed."""


@dataclass(frozen=True, slots=True)
class Score:
    """A measured number with its interval, sample size and chance level.

    Attributes
    ----------
    value : float
        In the unit of its measure, mostly per cent; NaN if nothing could be counted.
    ci95 : Interval
        Its interval, of 95 % unless its level differs; NO_INTERVAL if none was computed.
    n : int
        The number of independent samples behind the interval.
    chance : float
        The chance level, in the same unit; NaN if unknown.
    n_seeds : int
        The number of runs that the value averages.
    n_trials : int or None
        The number of trials within the samples, if a sample has several.
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

    def format(self, decimals: int = 1, *, is_bold: bool = False, with_n: bool = False) -> str:
        """Format the number with its interval as `83.2 [70.0, 91.3]`, as all tables do.

        Both have the same decimals, as many as the ends of the interval need to differ: a number
        is never printed outside its interval, nor an interval as one number.

        Examples
        --------
        >>> Score(83.2, Interval(70.04, 91.3), 40).format()
        '83.2 [70.0, 91.3]'
        >>> Score(83.2, Interval(70.04, 91.3), 40).format(0, is_bold=True, with_n=True)
        '**83** [70, 91], n 40'
        >>> Score(99.98, Interval(99.95, 100), 40).format()
        '99.98 [99.95, 100.00]'
        >>> Score(25, Interval(25, 25), 1).format()
        '25.0'
        >>> Score(float("nan"), Interval(0, 100)).format()
        '–'
        """
        if math.isnan(self.value):
            return "–"
        mark, decimals = "**" if is_bold else "", self.ci95.decimals(decimals)
        text = f"{mark}{self.value:.{decimals}f}{mark}"
        if self.ci95.is_known:
            text += f" [{self.ci95.low:.{decimals}f}, {self.ci95.high:.{decimals}f}]"
        return f"{text}, n {self.n:,}" if with_n else text

    def in_text(self, decimals: int = 1, *, is_bold: bool = False, is_inside: bool = False) -> str:
        """Format the number with its interval for a sentence: `83.2 (95 % CI 70.0–91.3)`.

        Parameters
        ----------
        is_inside : bool
            Whether it already stands in parentheses: `83.2, 95 % CI 70.0–91.3`.

        Examples
        --------
        >>> Score(83.2, Interval(70.04, 91.3), 40).in_text(0)
        '83 (95 % CI 70–91)'
        >>> Score(83.2, Interval(70.04, 91.3), 40).in_text(is_bold=True, is_inside=True)
        '**83.2**, 95 % CI 70.0–91.3'
        >>> Score(25).in_text(), Score(float("nan")).in_text()
        ('25.0', '–')
        """
        if math.isnan(self.value):
            return "–"
        value, interval = self.parts(decimals)
        text = f"**{value}**" if is_bold else value
        if not self.ci95.is_known:
            return text
        return f"{text}, 95 % CI {interval}" if is_inside else f"{text} (95 % CI {interval})"

    def parts(self, decimals: int = 1) -> tuple[str, str]:
        """Format the number and its interval as two strings, with the decimals that `format` uses.

        Examples
        --------
        >>> Score(99.98, Interval(99.95, 100), 40).parts(0)
        ('99.98', '99.95–100.00')
        >>> Score(0, Interval(0, 0.00001), 40).parts(0)
        ('0.0000', '0.0000–0.0000')
        >>> Score(25, Interval(25, 25), 1).parts(0)
        ('25', 'not known')
        """
        decimals = self.ci95.decimals(decimals)
        return f"{self.value:.{decimals}f}", self.ci95.printed(decimals)

    def in_percent(self) -> Score:
        """Return the score, a share of 1, converted to per cent.

        Examples
        --------
        >>> Score(0.5, Interval(0.25, 0.75), 40).in_percent().format()
        '50.0 [25.0, 75.0]'
        """
        ends = Interval(100 * self.ci95.low, 100 * self.ci95.high, self.ci95.level)
        return replace(self, value=100 * self.value, ci95=ends, chance=100 * self.chance)

    def is_resolved_from(self, other: Score) -> bool:
        """Return whether the intervals of two scores do not overlap.

        Stricter than a paired test, which needs the samples. Without an interval nothing is
        resolved.
        """
        return self.ci95.low > other.ci95.high or other.ci95.low > self.ci95.high

    def direction(self, even: float = 0.0) -> str:
        """Return whether the score is significantly "more" or "less" than `even`, in words.

        Examples
        --------
        >>> Score(0.02, Interval(-0.01, 0.05), 9, 0.0).direction()
        'not significantly different'
        """
        if self.ci95.low > even:
            return "more"
        return "less" if self.ci95.high < even else "not significantly different"

    def to_dict(self) -> dict[str, Any]:
        """Return the score as a JSON-able dictionary; NaN becomes None."""
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
        """Restore a score from the dictionary of `to_dict`.

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
        """Return value and interval as a dictionary with the keys MEASURE and MEASURE_ci95."""
        ends = [self.ci95.low, self.ci95.high] if self.has_interval else None
        return {measure: self.value, f"{measure}_ci95": ends}

    @classmethod
    def of_record(cls, record: Mapping[str, Any], measure: str, chance: str = "chance") -> Score:
        """Restore a score from a record's entries MEASURE, MEASURE_ci95 and n.

        Parameters
        ----------
        chance : str
            The record's entry that holds the chance level, if any.

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
    """Documents that the samples come from, the unit of intervals; None if samples have none."""
    n_distinct: int | None = None
    """Distinct texts among the samples, the unit of intervals; None if not counted."""
    n_numbers: int = 0
    number_recall: float = math.nan
    """Recall over words with a digit; NaN if the samples have none."""
    n_rare: int = 0
    rare_recall: float = math.nan
    """Recall over the rarer half of the attack's vocabulary; NaN where the samples hold none."""

    @property
    def unit(self) -> str:
        """What intervals are resampled over: `document` or `sentence`."""
        return "sentence" if self.n_documents is None else "document"

    def score(self, measure: str, chance: float = math.nan) -> Score:
        """Return one measure, by name, as a `Score` with its interval and a chance level."""
        return Score(
            getattr(self, measure), getattr(self, f"{measure}_ci95", NO_INTERVAL), self.n, chance
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """The evaluation of one attack on one encoder and one set of texts, with its prior baseline."""

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
    """Distinct words of each text without stop words, summed over texts, encoded or not."""
    n_unread: int
    """Words of the text beyond the encoder's input limit; no score counts them."""
    n_texts_cut: int
    """Number of texts with such words."""
    sentences_per_second: float
    device: str
    precision: str = "float32"
    """Precision of the encoder's matrix products."""
    backend: str = "torch"
    """The library that encodes many texts at once."""
    n_queries_mean: float = 0.0
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def unrestricted_f1(self) -> float:
        """F1 if words outside the vocabulary count as missed, without its interval."""
        return self.unrestricted.value

    @property
    def sentence(self) -> str:
        """The result as one sentence: recall, F1 with its interval, and the baseline."""
        recall, recall_ci95 = self.scores.score("recall").parts(0)
        f1 = self.scores.score("token_set_f1").in_text(is_inside=True)
        return (
            f"The attack {self.attack} recovers {recall} % (95 % CI {recall_ci95}) of the words in "
            f"its vocabulary (F1 {f1}, n {self.scores.n:,}; guessing: "
            f"{self.baseline.token_set_f1:.0f})."
        )

    def __str__(self) -> str:
        """Return the result in one sentence."""
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-able nested dictionaries."""
        return asdict(self)
