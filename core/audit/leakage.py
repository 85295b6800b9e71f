"""Leakage of a sample of vectors: the words that an attack recovers, by row."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leakscope.core.attacks.inversion.evaluation import attack_vocabulary, restrict, score_answers
from leakscope.core.audit.expected import ExpectedF1, own_expectation
from leakscope.core.audit.sources import Sample
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import clopper_pearson, ratio_interval
from leakscope.core.metrics import token_set_scores
from leakscope.core.protocols import Encoder, InversionAttack, OnProgress, Vectors, no_progress
from leakscope.core.results import EvaluationResult, Interval, Recovery, Score
from leakscope.core.text import Vocabulary, check_text, revealing_words, word_set, words_with_digits
from leakscope.core.units import units_of


@dataclass(frozen=True)
class RowLeak:
    """The words that an attack recovered from one row.

    Attributes
    ----------
    row : str
        How the source names it.
    f1 : float
        Of its words, in [0, 1]; where no text is known, what the attack expects of itself.
    recovered : tuple of str
        Words of the text that the attack named, most confident first; all of its words where no
        text is known.
    n_words : int or None
        Words of the text that the attack can name; None where no text is known.
    unit : int or None
        Of the distinct text: the same for copies. None where no text is known.
    """

    row: str
    f1: float
    recovered: tuple[str, ...]
    n_words: int | None
    unit: int | None = None


def same_text(rows: Sequence[RowLeak]) -> dict[str, str]:
    """Return a dict from each row that repeats an earlier row's text to that row, as digests."""
    first: dict[int, str] = {}
    found = {}
    for row in rows:
        digest = row_digest(row.row)
        if row.unit is not None and (earlier := first.setdefault(row.unit, digest)) != digest:
            found[digest] = earlier
    return found


def row_digest(row: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a row's name, to hide the name."""
    return hashlib.sha256(row.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True)
class Recovered:
    """The share of words of one kind that the attack recovered.

    Attributes
    ----------
    share : Score
        Per cent of those in the attack's vocabulary; n counts distinct texts that contain any. NaN
        where none does.
    n_listed, n_all : int
        Words of the kind in the texts: on the list, and all of them. The rest is untested.
    """

    share: Score
    n_listed: int
    n_all: int


@dataclass(frozen=True)
class Leakage:
    """The words that an attack recovered from the rows of a sample, with scores.

    Attributes
    ----------
    attack : str
    f1 : Score
        Token-set F1 in per cent with its interval, beside guessing; expected, where no text is
        known.
    result : EvaluationResult or None
        All scores, where texts are known.
    rows : tuple of RowLeak
        Of each attacked row that has a word to find, the one that leaks most first.
    recovered : mapping of str to Recovered
        Of `names` and of `numbers`; empty without texts.
    """

    attack: str
    f1: Score
    result: EvaluationResult | None
    rows: tuple[RowLeak, ...]
    recovered: Mapping[str, Recovered]

    @property
    def f1_by_row(self) -> dict[str, float]:
        """A dict from the digest of each row's name to its F1 in [0, 1]."""
        return {row_digest(row.row): round(row.f1, 4) for row in self.rows}

    def recovered_to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the recovered shares of names and numbers as a JSON-able dict by kind."""
        return {
            kind: {**part.share.to_dict(), "n_listed": part.n_listed, "n_all": part.n_all}
            for kind, part in self.recovered.items()
        }


def estimate_leakage(
    sample: Sample, answers: Sequence[Recovery], line: ExpectedF1
) -> Leakage | None:
    """Estimate F1 from answers to vectors without texts; None if the line does not cover them."""
    if len(sample.ids) < 2:
        raise InvalidInputError("An estimate without texts needs at least 2 vectors.")
    if not line.covers(answers):
        return None
    rows = [
        RowLeak(row, own_expectation(answer), tuple(word.word for word in answer.words), None)
        for row, answer in zip(sample.ids, answers, strict=True)
    ]
    rows.sort(key=lambda row: -row.f1)
    return Leakage(line.attack, line.predict(answers), None, tuple(rows), {})


def measure_leakage(
    sample: Sample,
    encoder: Encoder,
    attack: InversionAttack,
    *,
    name: str,
    on_progress: OnProgress = no_progress,
) -> Leakage:
    """Attack the rows of a sample with known texts and score the recovered words.

    Parameters
    ----------
    encoder : Encoder
        The one that made the vectors.
    attack : InversionAttack
        Fitted on `encoder`.
    name : str
        How the result calls the texts.

    Raises
    ------
    InvalidInputError
        No row has a text with a word to find.
    """
    return measure_answers(
        sample,
        encoder,
        attack,
        lambda vectors: attack.invert(encoder, vectors, on_progress),
        name=name,
    )[0]


def measure_answers(
    sample: Sample,
    encoder: Encoder,
    attack: InversionAttack,
    invert: Callable[[Vectors], Sequence[Recovery]],
    *,
    name: str,
) -> tuple[Leakage, Sequence[Recovery]]:
    """Call `invert` on the rows with known texts and score it; return the scores and the answers.

    The parameters are those of `measure_leakage`.
    """
    known = sample.take(usable_rows(sample.texts))
    if not known.ids:
        raise InvalidInputError(f"{name}: no row has a text to compare the answers with.")
    start = time.perf_counter()
    answers = invert(known.vectors)
    found = score_leakage(
        attack,
        encoder,
        dict(zip(known.ids, known.known_texts, strict=True)),
        answers,
        seconds=time.perf_counter() - start,
        seed=sample.seed,
        name=name,
    )
    return found, answers


def score_leakage(
    attack: InversionAttack,
    encoder: Encoder,
    texts: Mapping[str, str],
    answers: Sequence[Recovery],
    *,
    seconds: float,
    seed: int,
    name: str,
    vocabulary: Vocabulary | None = None,
) -> Leakage:
    """Score an attack's answers, one per vector, against the known texts of the vectors.

    Parameters
    ----------
    texts : mapping of str to str
        By the names of their rows, each with a text that can be encoded.
    answers : sequence of Recovery
        One for each text, in their order.
    seconds : float
        That the attack took.
    seed : int
        Of the intervals.
    name : str
        How the result calls the texts.
    vocabulary : Vocabulary, optional
        Only words that it holds too are scored.

    Raises
    ------
    InvalidInputError
        No text has a word to find.
    """
    known = list(texts.values())
    result = score_answers(
        attack,
        encoder,
        known,
        answers,
        seconds=seconds,
        seed=seed,
        vocabulary=vocabulary,
        name=name,
    )
    scope = attack_vocabulary(attack, encoder)
    if vocabulary is not None:
        scope = restrict(scope, vocabulary.index.keys())
    parts = parts_read(encoder, known)
    targets = [scope.targets(part) for part in parts]
    named = [answer.word_set & scope.index.keys() for answer in answers]
    return Leakage(
        result.attack,
        result.scores.score("token_set_f1", result.baseline.token_set_f1),
        result,
        _score_rows(list(texts), known, targets, named, answers),
        _score_kinds(known, parts, targets, named, seed),
    )


def usable_rows(texts: Sequence[str | None] | None) -> list[int]:
    """Return the indices of the texts that exist and can be encoded."""
    found = []
    for i, text in enumerate(texts or ()):
        if text is not None:
            with suppress(InvalidInputError):
                check_text(text)
                found.append(i)
    return found


def _score_rows(
    ids: Sequence[str],
    texts: Sequence[str],
    targets: Sequence[AbstractSet[str]],
    named: Sequence[AbstractSet[str]],
    answers: Sequence[Recovery],
) -> tuple[RowLeak, ...]:
    """Score each row that has words to find; return what leaked from each, highest F1 first."""
    rows = []
    numbers: dict[object, int] = {}
    units = [numbers.setdefault(unit, len(numbers)) for unit in units_of(texts)]
    found = zip(ids, units, targets, named, answers, strict=True)
    for row, unit, target, words, answer in found:
        if not target:
            continue
        _, _, f1 = token_set_scores(target, words)
        hits = tuple(found.word for found in answer.words if found.word in target)
        rows.append(RowLeak(row, f1, hits, len(target), unit))
    return tuple(sorted(rows, key=lambda row: -row.f1))


def _score_kinds(
    texts: Sequence[str],
    parts: Sequence[str],
    targets: Sequence[AbstractSet[str]],
    named: Sequence[AbstractSet[str]],
    seed: int,
) -> dict[str, Recovered]:
    """Compute the recovered shares of names and of numbers, as a dict by kind."""
    revealing = [
        revealing_words(text) & word_set(part) for text, part in zip(texts, parts, strict=True)
    ]
    numbers = [words_with_digits(words) for words in revealing]
    names = [words - digits for words, digits in zip(revealing, numbers, strict=True)]
    found = {}
    for kind, words in (("names", names), ("numbers", numbers)):
        sought = [mine & target for mine, target in zip(words, targets, strict=True)]
        hits = [len(a & b) for a, b in zip(sought, named, strict=True)]
        over = [len(each) for each in sought]
        share = share_found(texts, hits, over, float("nan"), seed)
        found[kind] = Recovered(share, sum(over), sum(map(len, words)))
    return found


def share_found(
    texts: Sequence[str],
    hits: ArrayLike,
    sought: ArrayLike,
    chance: float,
    seed: int,
) -> Score:
    """Return the percentage of sought words that were found, with an interval over distinct texts.

    Parameters
    ----------
    texts : sequence of n str
    hits, sought : sequence of n numbers
        Words of each text that were found, and that were to be found.
    chance : float
        The share that guessing finds, in [0, 1].
    seed : int
        Of the bootstrap.
    """
    hits, sought = np.asarray(hits, np.float64), np.asarray(sought, np.float64)
    held = np.flatnonzero(sought).tolist()
    if not held:
        return Score(float("nan"))
    units = units_of([texts[i] for i in held])
    n, share = len(set(units)), float(hits.sum() / sought.sum())
    if n < 2:  # the variation between texts is unknown
        return Score(100 * share, n=n, chance=100 * chance)
    if share in (0.0, 1.0):  # a bootstrap over equal samples has no width
        interval = clopper_pearson(round(share * n), n)
    else:
        found = ratio_interval(hits[held], sought[held], groups=units, seed=seed)
        interval = Interval(max(0.0, found.low), min(1.0, found.high))
    return Score(share, interval, n, chance).in_percent()


def mask_word(word: str) -> str:
    """Mask a word for a report: keep its first letter and its length.

    Examples
    --------
    >>> mask_word("harbour"), mask_word("4")
    ('h••••••', '•')
    """
    return word[0] + "•" * (len(word) - 1) if len(word) > 1 else "•"


def strongest_attack(encoder: Encoder) -> str:
    """Return the name of the strongest attack that needs no training on the given encoder.

    In the order of the published tables: the re-embedding search, the probe-started classifier,
    both where weights ship for the encoder; else the word probe, which needs none.
    """
    from leakscope.core.attacks.inversion.shipped import shipped_digest

    ranked = ("search", "probe_mlc")
    return next((name for name in ranked if shipped_digest(encoder, name)), "probe")
