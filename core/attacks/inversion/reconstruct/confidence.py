"""How often such words, and such sentences, are right: learned from sentences that are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.attacks.inversion.reconstruct.scores import spoken
from core.errors import InvalidInputError
from core.language import language_evidence
from core.results import RecoveredWord, Sentence, SentenceStep
from core.text import STOP_WORDS

__all__ = [
    "CALIBRATED_ON",
    "ELSEWHERE",
    "Answer",
    "Confidence",
    "right_words",
    "why_not_calibrated",
]

CALIBRATED_ON = (
    "held-out English sentences of 4 to 32 words: encyclopaedia, and for the shortest novels and "
    "everyday sentences"
)
"""What `tools.confidence` learns the shipped confidence from."""

ELSEWHERE = (
    "On other kinds of text it may be too high: medical sentences were right about ten points less "
    "often than it said"
)
"""What was measured elsewhere (docs/results/reconstruct-medical.md, sentences of all lengths)."""

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
    """A sentence that was read, with what the attacker can see of it."""

    step: SentenceStep
    believed: Mapping[str, float]
    """Of the words that the classifier underneath reads, the probability."""

    @property
    def words(self) -> list[str]:
        """The sentence without its marks."""
        return spoken(self.step.text)

    @property
    def is_asked(self) -> bool:
        """Whether the encoder was asked about it."""
        return not math.isnan(self.step.cosine)

    @property
    def closeness(self) -> float:
        """Return − log(1 − cosine), which keeps apart what is near one."""
        return -math.log(1 - min(self.step.cosine, 1.0) + _FLOOR)

    def word_features(self) -> NDArray[np.float64]:
        """Return a row for each word."""
        words = self.words
        rows = []
        for word in words:
            p = min(max(self.believed.get(word, 0.0), _FLOOR), 1 - _FLOOR)
            row = [math.log(p / (1 - p)), word in STOP_WORDS, word not in self.believed]
            row.append(math.log(len(words)))
            rows.append([*row, self.closeness] if self.is_asked else row)
        return np.array(rows, dtype=np.float64).reshape(len(words), 5 if self.is_asked else 4)

    def features(self) -> NDArray[np.float64]:
        """Return the row of the sentence."""
        own = self.closeness if self.is_asked else math.log(max(len(self.words), 1))
        return np.array([[own]])


@dataclass(frozen=True)
class Confidence:
    """P(the text holds a word), and P(a sentence is right word for word): logistic regressions.

    A word's is of the classifier's belief in it, whether it is a stop word, whether the classifier
    could name it, the sentence's length, and its closeness − log(1 − cosine); a sentence's is of
    its closeness. Answers without a query have models of their own, without cosines.
    """

    models: Mapping[str, tuple[float, ...]]
    n: int
    """Sentences that it was learned from."""

    @classmethod
    def fit(cls, answers: Sequence[Answer], true: Sequence[str]) -> Self:
        """Learn from answers to sentences that are known; the same one may stand there often."""
        models = {}
        for tail, is_asked in (("", True), ("_unasked", False)):
            own = [i for i, answer in enumerate(answers) if answer.is_asked is is_asked]
            rows = [answers[i].word_features() for i in own]
            right = [right_words(true[i], answers[i].step.text) for i in own]
            models[f"words{tail}"] = _fitted(np.concatenate(rows), np.concatenate(right))
            whole = np.concatenate([answers[i].features() for i in own])
            same = np.array([spoken(true[i]) == answers[i].words for i in own])
            models[f"sentence{tail}"] = _fitted(whole, same)
        return cls(models, len(set(true)))

    def of_words(self, answer: Answer) -> list[float]:
        """Return for each word how often such are right."""
        name = "words" if answer.is_asked else "words_unasked"
        return _chance(answer.word_features(), self.models[name]).tolist()

    def of_sentence(self, answer: Answer) -> float:
        """Return how often such sentences are right word for word."""
        name = "sentence" if answer.is_asked else "sentence_unasked"
        return float(_chance(answer.features(), self.models[name])[0])

    def told(self, sentence: Sentence, answer: Answer) -> Sentence:
        """Return a sentence with how often such, and each of its words, are right."""
        pairs = zip(answer.words, self.of_words(answer), strict=True)
        words = tuple(RecoveredWord(word, chance) for word, chance in pairs)
        return replace(sentence, confidence=self.of_sentence(answer), words=words)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` restores."""
        return {"n": self.n, **{name: list(model) for name, model in self.models.items()}}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Restore what `to_dict` returned.

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


def _fitted(rows: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, ...]:
    """Return weights and intercept; where all are right, or none, what one more would make it."""
    n, n_right = len(right), int(right.sum())
    if n_right in (0, n):
        share = (n_right + 1) / (n + 2)
        return (*np.zeros(rows.shape[1]).tolist(), math.log(share / (1 - share)))
    from sklearn.linear_model import LogisticRegression

    scale = rows.std(axis=0) + 1e-9
    model = LogisticRegression(C=10.0, max_iter=1000).fit(rows / scale, right)
    return (*(model.coef_[0] / scale).tolist(), float(model.intercept_[0]))


def _chance(rows: NDArray[np.float64], model: tuple[float, ...]) -> NDArray[np.float64]:
    *weights, intercept = model
    found: NDArray[np.float64] = 1 / (1 + np.exp(-(rows @ np.array(weights) + intercept)))
    return found


def why_not_calibrated(text: str) -> str:
    """Return why the confidence does not hold for a text, as a clause; empty where it may hold.

    It was learned from `CALIBRATED_ON`. On a text in another language, of another length, or with
    many rare words it is not calibrated. Only who knows the text can tell; an attacker cannot.

    Examples
    --------
    >>> why_not_calibrated("The minister will meet the members of the council on Friday.")
    ''
    >>> why_not_calibrated("Neurosyphilis without treatment leads to dementia and meningitis.")
    '38 % of its words are rare'
    >>> why_not_calibrated("Good morning")
    'it has fewer than 4 words'
    """
    n = len(spoken(text))
    found = language_evidence(text)
    if found.is_unlike_english:
        return "it does not look English"
    if n < _SHORTEST:
        return f"it has fewer than {_SHORTEST} words"
    if n > _LONGEST:
        return f"it has more than {_LONGEST} words"
    share = found.n_other / max(found.n_stop + found.n_frequent + found.n_other, 1)
    return f"{100 * share:.0f} % of its words are rare" if share >= _MOST_RARE else ""


def right_words(true: str, said: str) -> NDArray[np.bool_]:
    """Return which words of a sentence the true one holds, each as often as it stands there.

    Examples
    --------
    >>> right_words("the cat and the dog", "the the the cow").tolist()
    [True, True, False, False]
    """
    left, found = Counter(spoken(true)), []
    for word in spoken(said):
        found.append(left[word] > 0)
        left[word] -= 1
    return np.array(found, dtype=bool)
