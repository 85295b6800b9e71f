"""What leaks from a sample of vectors: the words that an attack recovers, and from which rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from core.attacks.inversion.evaluation import attack_vocabulary, score_answers
from core.audit.expected import ExpectedF1, own_expectation
from core.audit.sources import Sample
from core.encoders.white_box import parts_read
from core.errors import InvalidInputError
from core.intervals import clopper_pearson, ratio_interval
from core.metrics import token_set_scores
from core.protocols import Encoder, InversionAttack, OnProgress, no_progress
from core.results import EvaluationResult, Interval, Recovery, Score
from core.text import check_text, numbers_of, revealing_words, word_set
from core.units import units_of


@dataclass(frozen=True)
class RowLeak:
    """What leaked from one row.

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
    """

    row: str
    f1: float
    recovered: tuple[str, ...]
    n_words: int | None


@dataclass(frozen=True)
class Recovered:
    """How many words of a kind the attack recovered.

    Attributes
    ----------
    share : Score
        Per cent of those on the attack's word list; n is the distinct texts that hold any. NaN
        where none does.
    n_listed, n_all : int
        Words of the kind in the texts: on the list, and all of them. The rest is untested.
    """

    share: Score
    n_listed: int
    n_all: int


@dataclass(frozen=True)
class Leakage:
    """What an attack recovered from the rows of a sample.

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


def expect_leakage(
    sample: Sample,
    encoder: Encoder,
    attack: InversionAttack,
    line: ExpectedF1,
    *,
    on_progress: OnProgress = no_progress,
) -> Leakage | None:
    """Attack the rows of a sample whose texts are not known, and say which F1 to expect.

    Parameters
    ----------
    encoder : Encoder
        The one that made the vectors.
    attack : InversionAttack
        The one that `line` was measured with.
    line : ExpectedF1

    Returns
    -------
    Leakage or None
        None where the answers are unlike those to the corpora of the line.

    Raises
    ------
    InvalidInputError
        Fewer than 2 rows, of which no interval could be given.
    """
    if len(sample.ids) < 2:
        raise InvalidInputError("An estimate without texts needs at least 2 vectors.")
    answers = attack.invert(encoder, sample.vectors, on_progress)
    if not line.covers(answers):
        return None
    found = zip(sample.ids, answers, strict=True)
    rows = [
        RowLeak(row, own_expectation(answer), tuple(word.word for word in answer.words), None)
        for row, answer in found
    ]
    return Leakage(line.attack, line.predict(answers), None, _sorted(rows), {})


def measure_leakage(
    sample: Sample,
    encoder: Encoder,
    attack: InversionAttack,
    *,
    name: str,
    on_progress: OnProgress = no_progress,
) -> Leakage:
    """Attack the rows of a sample whose texts are known, and score the words.

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
    texts = sample.texts or ()
    held = usable_rows(texts)
    if not held:
        raise InvalidInputError(f"{name}: no row has a text, so nothing can be compared.")
    known = [texts[i] or "" for i in held]
    start = time.perf_counter()
    answers = attack.invert(encoder, sample.vectors[held], on_progress)
    seconds = time.perf_counter() - start
    result = score_answers(
        attack, encoder, known, answers, seconds=seconds, seed=sample.seed, name=name
    )
    vocabulary = attack_vocabulary(attack, encoder)
    targets = [vocabulary.targets(part) for part in parts_read(encoder, known)]
    said = [answer.word_set & vocabulary.index.keys() for answer in answers]
    return Leakage(
        result.attack,
        result.scores.score("token_set_f1", result.baseline.token_set_f1),
        result,
        _by_row([sample.ids[i] for i in held], targets, answers),
        _recovered(known, parts_read(encoder, known), targets, said, sample.seed),
    )


def usable_rows(texts: Sequence[str | None] | None) -> list[int]:
    """Return the places of the texts that are there and can be encoded."""
    return [i for i, text in enumerate(texts or ()) if _is_usable(text)]


def _is_usable(text: str | None) -> bool:
    """Return whether there is a text that can be encoded."""
    if text is None:
        return False
    try:
        check_text(text)
    except InvalidInputError:
        return False
    return True


def _by_row(
    ids: Sequence[str], targets: Sequence[frozenset[str]], answers: Sequence[Recovery]
) -> tuple[RowLeak, ...]:
    rows = []
    for row, target, answer in zip(ids, targets, answers, strict=True):
        if not target:
            continue
        _, _, f1 = token_set_scores(target, answer.word_set)
        hits = tuple(found.word for found in answer.words if found.word in target)
        rows.append(RowLeak(row, f1, hits, len(target)))
    return _sorted(rows)


def _sorted(rows: Sequence[RowLeak]) -> tuple[RowLeak, ...]:
    return tuple(sorted(rows, key=lambda row: -row.f1))


def _recovered(
    texts: Sequence[str],
    parts: Sequence[str],
    targets: Sequence[AbstractSet[str]],
    said: Sequence[AbstractSet[str]],
    seed: int,
) -> dict[str, Recovered]:
    """Return what was recovered of names and of numbers in the parts that the encoder reads."""
    revealing = [
        revealing_words(text) & word_set(part) for text, part in zip(texts, parts, strict=True)
    ]
    numbers = [numbers_of(words) for words in revealing]
    names = [words - digits for words, digits in zip(revealing, numbers, strict=True)]
    found = {}
    for kind, words in (("names", names), ("numbers", numbers)):
        sought = [mine & target for mine, target in zip(words, targets, strict=True)]
        found[kind] = Recovered(
            _share(texts, sought, said, seed), sum(map(len, sought)), sum(map(len, words))
        )
    return found


def _share(
    texts: Sequence[str],
    sought: Sequence[AbstractSet[str]],
    said: Sequence[AbstractSet[str]],
    seed: int,
) -> Score:
    held = [i for i, words in enumerate(sought) if words]
    if not held:
        return Score(float("nan"))
    over = np.array([len(sought[i]) for i in held], dtype=np.float64)
    hits = np.array([len(sought[i] & said[i]) for i in held], dtype=np.float64)
    units = units_of([texts[i] for i in held])
    n, share = len(set(units)), float(hits.sum() / over.sum())
    if n < 2:  # nothing shows how texts differ
        return Score(100 * share, n=n)
    if share in (0.0, 1.0):  # a bootstrap of equal samples has no width
        interval = clopper_pearson(round(share * n), n)
    else:
        found = ratio_interval(hits, over, groups=units, seed=seed)
        interval = Interval(max(0.0, found.low), min(1.0, found.high))
    return Score(share, interval, n).in_percent()


def masked(word: str) -> str:
    """Return a word that a report may show: its first letter and how long it is.

    Examples
    --------
    >>> masked("harbour"), masked("4")
    ('h••••••', '•')
    """
    return word[0] + "•" * (len(word) - 1) if len(word) > 1 else "•"


def strongest_attack(encoder: Encoder) -> str:
    """Return the name of the strongest attack that can be opened on an encoder without training.

    In the order of the published tables: the re-embedding search, the probe-started classifier,
    both where weights ship for the encoder; else the word probe, which needs none.
    """
    from core.attacks.inversion.shipped import shipped_digest

    ranked = ("search", "probe_mlc")
    return next((name for name in ranked if shipped_digest(encoder, name)), "probe")
