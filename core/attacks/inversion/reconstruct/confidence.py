"""Calibrated confidence of reconstructed words and sentences, learned from known sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.inversion.reconstruct.scores import word_tokens
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import percent_interval, rate_by_document
from leakscope.core.language import language_evidence
from leakscope.core.results import (
    NO_INTERVAL,
    Interval,
    RecoveredWord,
    Recovery,
    Score,
    Sentence,
    SentenceStep,
)
from leakscope.core.text import STOP_WORDS
from leakscope.core.units import cluster_ids

CALIBRATED_ON = (
    "held-out English sentences of 4 to 32 words: encyclopaedia, and for the shortest novels and "
    "everyday sentences"
)
"""The texts from which `scripts.reconstruction_confidence` learns the shipped confidence."""

ELSEWHERE = (
    "On other kinds of text it may be too high: medical sentences were right about ten points less "
    "often than stated"
)
"""The result on other texts (results/reconstruct-medical.md, sentences of all lengths)."""

_SHORTEST, _LONGEST = 4, 32

_MOST_RARE = 0.2
"""Share of rare words from which a text is unlike the sentences above. Of sentences of Wikipedia,
reviews, e-mail, news and support messages 13 to 23 % have as many, of medical ones 55 %: the attack
lacks such words, writes others, and is as sure of them."""

_FLOOR = 1e-3
"""Of a word's probability, and of 1 − cosine."""

_LENGTHS = {"words": 6, "words_unasked": 5, "sentence": 2, "sentence_unasked": 2}
"""Numbers of each model: its weights and its intercept."""


@dataclass(frozen=True)
class Answer:
    """A reconstructed sentence with the evidence that the attacker has about it."""

    step: SentenceStep
    believed: Mapping[str, float]
    """The word classifier's probability of each word."""

    @property
    def words(self) -> list[str]:
        """The words of the reconstructed sentence, without punctuation."""
        return word_tokens(self.step.text)

    @property
    def is_asked(self) -> bool:
        """Whether the encoder was queried with the sentence."""
        return not math.isnan(self.step.cosine)

    @property
    def closeness(self) -> float:
        """The sentence's − log(1 − cosine), which spreads out cosines near one."""
        return -math.log(1 - min(self.step.cosine, 1.0) + _FLOOR)

    def word_features(self) -> NDArray[np.float64]:
        """Return the features of the model of word confidence, one row per word."""
        words = self.words
        rows = []
        for word in words:
            p = min(max(self.believed.get(word, 0.0), _FLOOR), 1 - _FLOOR)
            row = [math.log(p / (1 - p)), word in STOP_WORDS, word not in self.believed]
            row.append(math.log(len(words)))
            rows.append([*row, self.closeness] if self.is_asked else row)
        return np.array(rows, dtype=np.float64).reshape(len(words), 5 if self.is_asked else 4)

    def features(self) -> NDArray[np.float64]:
        """Return the features of the model of sentence confidence, one row."""
        own = self.closeness if self.is_asked else math.log(max(len(self.words), 1))
        return np.array([[own]])


@dataclass(frozen=True)
class Confidence:
    """Logistic regressions of P(a word is right) and P(the sentence is right word for word).

    A word's is of the classifier's belief in it, whether it is a stop word, whether the classifier
    could name it, the sentence's length, and its closeness − log(1 − cosine); a sentence's is of
    its closeness. Answers without a query have models of their own, without cosines.
    """

    models: Mapping[str, tuple[float, ...]]
    n: int
    """Number of sentences that it was learned from."""

    @classmethod
    def fit(cls, answers: Sequence[Answer], true: Sequence[str]) -> Self:
        """Fit on answers and their true sentences; a sentence may occur several times."""
        models = {}
        for tail, is_asked in (("", True), ("_unasked", False)):
            own = [i for i, answer in enumerate(answers) if answer.is_asked is is_asked]
            rows = [answers[i].word_features() for i in own]
            right = [right_words(true[i], answers[i].step.text) for i in own]
            models[f"words{tail}"] = _fit_logistic(np.concatenate(rows), np.concatenate(right))
            whole = np.concatenate([answers[i].features() for i in own])
            same = np.array([word_tokens(true[i]) == answers[i].words for i in own])
            models[f"sentence{tail}"] = _fit_logistic(whole, same)
        return cls(models, len(set(true)))

    def word_confidences(self, answer: Answer) -> list[float]:
        """Return the probability that each word of a reconstructed sentence is right."""
        name = "words" if answer.is_asked else "words_unasked"
        return _logistic(answer.word_features(), self.models[name]).tolist()

    def sentence_confidence(self, answer: Answer) -> float:
        """Return the probability that a reconstructed sentence is right word for word."""
        name = "sentence" if answer.is_asked else "sentence_unasked"
        return float(_logistic(answer.features(), self.models[name])[0])

    def annotate(self, sentence: Sentence, answer: Answer) -> Sentence:
        """Return a sentence with the confidences of the whole and of each word added."""
        pairs = zip(answer.words, self.word_confidences(answer), strict=True)
        words = tuple(RecoveredWord(word, chance) for word, chance in pairs)
        return replace(sentence, confidence=self.sentence_confidence(answer), words=words)

    def to_dict(self) -> dict[str, Any]:
        """Return the models' weights as a JSON-able dictionary."""
        return {"n": self.n, **{name: list(model) for name, model in self.models.items()}}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Build the confidence from what `to_dict` returned.

        Raises
        ------
        InvalidInputError
            A model is missing, or of other numbers.
        """
        models = {name: tuple(map(float, stored.get(name, ()))) for name in _LENGTHS}
        for name, model in models.items():
            if len(model) != _LENGTHS[name] or not all(map(math.isfinite, model)):
                raise InvalidInputError(
                    f"The confidence's {name} takes {_LENGTHS[name]} numbers, got {len(model)}, "
                    "or some are not finite. Restore the file."
                )
        return cls(models, int(stored["n"]))


def _fit_logistic(rows: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, ...]:
    """Fit a logistic regression: weights, then intercept; weights are 0 if all labels are equal."""
    n, n_right = len(right), int(right.sum())
    if n_right in (0, n):
        share = (n_right + 1) / (n + 2)
        return (*np.zeros(rows.shape[1]).tolist(), math.log(share / (1 - share)))
    from sklearn.linear_model import LogisticRegression

    scale = rows.std(axis=0) + 1e-9
    model = LogisticRegression(C=10.0, max_iter=1000).fit(rows / scale, right)
    return (*(model.coef_[0] / scale).tolist(), float(model.intercept_[0]))


def _logistic(rows: NDArray[np.float64], model: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the probability that a fitted logistic model gives to each row of features."""
    *weights, intercept = model
    found: NDArray[np.float64] = 1 / (1 + np.exp(-(rows @ np.array(weights) + intercept)))
    return found


def why_not_calibrated(text: str) -> str:
    """Return why the confidence does not hold for a text, as a clause; empty if it may hold.

    It was learned from `CALIBRATED_ON`. On a text in another language, of another length, or with
    many rare words it is not calibrated. That needs the text, which an attacker does not have.

    Examples
    --------
    >>> why_not_calibrated("The minister will meet the members of the council on Friday.")
    ''
    >>> why_not_calibrated("Neurosyphilis without treatment leads to dementia and meningitis.")
    '38 % of its words are rare'
    >>> why_not_calibrated("Good morning")
    'it has fewer than 4 words'
    """
    n = len(word_tokens(text))
    found = language_evidence(text)
    if found.is_unlike_english:
        return "it does not look English"
    if n < _SHORTEST:
        return f"it has fewer than {_SHORTEST} words"
    if n > _LONGEST:
        return f"it has more than {_LONGEST} words"
    share = found.n_other / max(found.n_stop + found.n_frequent + found.n_other, 1)
    return f"{100 * share:.0f} % of its words are rare" if share >= _MOST_RARE else ""


def right_words(true: str, answer: str) -> NDArray[np.bool_]:
    """Return whether the true sentence has each word of the reconstructed one, with multiplicity.

    Examples
    --------
    >>> right_words("the cat and the dog", "the the the cow").tolist()
    [True, True, False, False]
    """
    left, found = Counter(word_tokens(true)), []
    for word in word_tokens(answer):
        found.append(left[word] > 0)
        left[word] -= 1
    return np.array(found, dtype=bool)


_BINS = 10
_RESAMPLES = 2000


def calibration_error(
    confidences: Sequence[float], is_right: Sequence[bool] | NDArray[np.bool_], n_bins: int = _BINS
) -> float:
    """Return the expected calibration error of confidences, in percentage points; NaN if empty.

    Implements Eq. 3 of Guo et al. (2017), "On Calibration of Modern Neural Networks": the mean
    distance of confidence and share of right ones over bins of equal width, each weighted by how
    many fall into it.
    Differs from the paper: nothing.

    Examples
    --------
    >>> calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    """
    p, right = np.asarray(confidences, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    if not len(p):
        return math.nan
    bins = _bins(p, n_bins)
    gaps = [abs(float((p - right)[bins == b].sum())) for b in np.unique(bins)]
    return 100 * sum(gaps) / len(p)


def _bins(confidences: NDArray[np.float64], n_bins: int) -> NDArray[np.int64]:
    """Return the number of the equal-width bin of each confidence in [0, 1]."""
    return np.minimum((confidences * n_bins).astype(np.int64), n_bins - 1)


def calibration_interval(
    confidences: Sequence[float],
    is_right: Sequence[bool] | NDArray[np.bool_],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Interval:
    """Bootstrap groups of answers; return the 95 % interval of their `calibration_error`.

    Implements the basic bootstrap (Davison & Hinkley 1997, §5.2): 2θ less the quantiles of what
    draws give. A draw deviates upwards from its sample, as the sample does from the population,
    since absolute distances are added up; percentiles would count that twice.
    Differs from the book: no end lies beyond 0 and 100.

    Parameters
    ----------
    confidences : sequence of n float in [0, 1]
    is_right : sequence of n bool
    groups : sequence of n
        What each comes from: its sentence, or its document.
    seed : int
        Of the resampling.

    Returns
    -------
    Interval
        In points; NO_INTERVAL of a single group.
    """
    p, right = np.asarray(confidences, dtype=np.float64), np.asarray(is_right, dtype=np.float64)
    rows = cluster_ids(groups, len(p))
    n_groups = int(rows.max()) + 1
    if n_groups < 2:
        return NO_INTERVAL
    gaps = np.zeros((n_groups, _BINS))
    np.add.at(gaps, (rows, _bins(p, _BINS)), p - right)
    sizes = np.bincount(rows).astype(np.float64)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_RESAMPLES)
    drawn = 100 * np.abs(times @ gaps).sum(axis=1) / (times @ sizes)
    error = calibration_error(confidences, is_right)
    low, high = 2 * error - np.quantile(drawn, [0.975, 0.025])
    low, high = (
        min(low, error),
        max(high, error),
    )  # bootstrap samples are biased upwards, so both may be below
    return Interval(max(0.0, float(low)), min(100.0, float(high)))


def sentences_after(
    answers: Sequence[Recovery],
    beliefs: Sequence[Mapping[str, float]],
    n_queries: int,
    confidence: Confidence | None,
) -> list[Sentence | None]:
    """Return each answer's best sentence after `n_queries` queries, or None, with confidence.

    Parameters
    ----------
    answers : sequence of n Recovery
    beliefs : sequence of n mappings
        The word classifier's probabilities, by word.
    """
    found: list[Sentence | None] = []
    for answer, believed in zip(answers, beliefs, strict=True):
        sentence = answer.sentence
        if sentence is not None:
            last = sentence.after(n_queries)
            sentence = replace(sentence, text=last.text, cosine=last.cosine)
            if confidence is not None:
                sentence = confidence.annotate(sentence, Answer(last, believed))
        found.append(sentence)
    return found


def calibration_scores(
    true: Sequence[str],
    answers: Sequence[Sentence | None],
    *,
    groups: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> dict[str, Score]:
    """Score how well confidences fit: mean confidence, share right, calibration error (all in %).

    For words and for whole sentences; empty without answers, or where they have no confidence.
    Intervals are of whole sentences, or of the units in `groups`.
    """
    confidences: dict[str, list[float]] = {"words": [], "sentences": []}
    right: dict[str, list[bool]] = {"words": [], "sentences": []}
    of: dict[str, list[Hashable]] = {"words": [], "sentences": []}
    units = range(len(true)) if groups is None else groups
    for text, found, unit in zip(true, answers or [None] * len(true), units, strict=True):
        if found is None or not found.words:
            continue
        confidences["words"] += [word.score for word in found.words]
        right["words"] += right_words(text, found.text).tolist()
        of["words"] += [("words of", unit)] * len(
            found.words
        )  # they differ, so they are not copies of a text
        confidences["sentences"].append(found.confidence)
        right["sentences"].append(word_tokens(text) == word_tokens(found.text))
        of["sentences"].append(unit)
    scores = {}
    for part, n in ((part, len(each)) for part, each in confidences.items() if each):
        error = calibration_error(confidences[part], right[part])
        interval = calibration_interval(confidences[part], right[part], of[part], seed=seed)
        scores[f"calibration_{part}"] = Score(error, interval, n)
        scores[f"told_{part}"] = _mean_percent(confidences[part], of[part], seed)
        if part == "words":
            scores["right_words"] = _mean_percent(right[part], of[part], seed)
        else:
            hits = np.array(right[part])
            scores["right_sentences"] = rate_by_document(hits, of[part], seed=seed)
    return scores


def _mean_percent(each: Sequence[float], groups: Sequence[Hashable], seed: int) -> Score:
    """Return the mean of fractions in per cent as a Score, with an interval over groups."""
    values = 100 * np.array(each, dtype=np.float64)
    return Score(
        float(values.mean()), percent_interval(values, groups=groups, seed=seed), len(each)
    )
