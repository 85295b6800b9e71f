"""Test what an attacker learns from vectors about the personal data in their texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from unicodedata import normalize

import numpy as np
import regex

from leakscope.core.audit.personal.confidence import LEAST_CANDIDATES, Confidence
from leakscope.core.audit.personal.confirmation import Confirmation, Question, confirm
from leakscope.core.audit.personal.detection import find_personal_data
from leakscope.core.audit.personal.kinds import KINDS, Identifier, draw_candidates
from leakscope.core.encoders.cache import CachedEncoder
from leakscope.core.encoders.shared import shared_encoder
from leakscope.core.encoders.white_box import parts_read
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import join_words
from leakscope.core.intervals import rate_by_document
from leakscope.core.protocols import Encoder, OnProgress, Vectors, no_progress
from leakscope.core.results import RecoveredWord, Recovery, Score
from leakscope.core.specs import EncoderSpec
from leakscope.core.units import next_distinct_row, units_of

DEFAULT_CANDIDATES = 1_000
"""With the true value."""

DEFAULT_MOST = 100
"""Number of identifiers to test: with 1,000 candidates, each takes about two seconds."""

BEYOND = "The encoder does not read that far into the text."
NO_VECTOR = "Its vector is zero or not finite."
TOO_FEW = "Too few other values of this form are known."


class Answer(StrEnum):
    """The outcome for an identifier; none of them means that it is safe."""

    RECOVERED = "recovered"
    CONFIRMABLE = "confirmable"
    NOT_CONFIRMED = "not confirmed"
    NOT_TESTABLE = "not testable"


@dataclass(frozen=True, kw_only=True)
class PersonalFinding:
    """The outcome for one identifier, without its value.

    Attributes
    ----------
    kind : str
        A key of KINDS.
    row : int
        The text that it is in.
    start, end : int
        Where it is there: `text[start:end]`.
    answer : Answer
        The first that holds: the attack named each of its words; the true value is ranked first;
        it is ranked lower; it could not be tested.
    reason : str
        Why it could not be tested; empty where it could.
    rank : int or None
        Of the true value among `n_candidates`, itself included; None where it was not ranked.
    n_candidates : int
    confidence : float or None
        The probability that an attacker may give the candidate that is ranked first; None where it
        was not calibrated for the encoder.
    without_truth : float or None
        The same, with the true value taken out of the list.
    row_name : str
        How a source names the row; empty where it has no name.
    rank_by_words : float or None
        The rank by the words that the attack recovered alone, ties in the middle.
    """

    kind: str
    row: int
    start: int
    end: int
    answer: Answer
    reason: str = ""
    rank: int | None = None
    n_candidates: int = 0
    confidence: float | None = None
    without_truth: float | None = None
    rank_by_words: float | None = None
    row_name: str = ""

    @property
    def sentence(self) -> str:
        """A sentence on the outcome, without the value."""
        entry = KINDS[self.kind]
        if self.answer is Answer.NOT_TESTABLE:
            return f"The {entry.title} could not be tested. {self.reason} It may still leak."
        if self.answer is Answer.RECOVERED:
            return f"The attack recovered the {entry.title} from the vector."
        among = f"{self.n_candidates:,} {entry.plural}"
        if self.answer is Answer.NOT_CONFIRMED:
            return (
                f"The {entry.title} ranked {self.rank:,} among {among}. Another attack may still "
                "confirm it."
            )
        claim = "" if self.confidence is None else f" The attacker can be {self._percent} certain."
        return f"The {entry.title} ranked first among {among}.{claim}"

    @property
    def _percent(self) -> str:
        """The confidence as a string in per cent, rounded down."""
        return f"{math.floor(1000 * (self.confidence or 0.0)) / 10:g} %"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome, ranks and confidence as a JSON-able dict, without the value."""
        return {
            "kind": self.kind,
            "row": self.row_name or self.row,
            "answer": str(self.answer),
            "reason": self.reason,
            "rank": self.rank,
            "n_candidates": self.n_candidates,
            "confidence": self.confidence,
            "confidence_without_truth": self.without_truth,
            "rank_by_words": self.rank_by_words,
        }


@dataclass(frozen=True, kw_only=True)
class KindSummary:
    """The outcomes for all identifiers of one kind.

    Attributes
    ----------
    kind : str
    n_found, n_tested : int
        Identifiers found in the texts, and those drawn to be tested.
    recovered, confirmable, learned, not_confirmed, not_testable : Score
        Per cent of those drawn, with intervals over distinct texts (n), beside chance. `recovered`
        is NaN where no attack was run; `learned` counts the recovered and the confirmable.
    wrong_claims : Score
        Per cent of the lists without the true value in which the attacker would claim a candidate
        with at least 95 %.
    median_rank, median_rank_by_words : float
        NaN where nothing was ranked.
    """

    kind: str
    n_found: int
    n_tested: int
    recovered: Score
    confirmable: Score
    learned: Score
    not_confirmed: Score
    not_testable: Score
    wrong_claims: Score
    median_rank: float
    median_rank_by_words: float

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, shares and median ranks as a JSON-able dict."""
        scores = {
            name: getattr(self, name).to_dict()
            for name in (
                "recovered",
                "confirmable",
                "learned",
                "not_confirmed",
                "not_testable",
                "wrong_claims",
            )
        }
        ranks = {
            name: None if math.isnan(value := getattr(self, name)) else value
            for name in ("median_rank", "median_rank_by_words")
        }
        return {"n_found": self.n_found, "n_tested": self.n_tested, **scores, **ranks}


@dataclass(frozen=True, kw_only=True)
class PersonalReport:
    """The outcomes for the personal data in some texts.

    Attributes
    ----------
    findings : tuple of PersonalFinding
        Of the identifiers that were drawn to be tested, in the order of the texts.
    summaries : mapping of str to KindSummary
        Of each kind that was found.
    n_texts : int
        Texts that were searched.
    seed : int
        Of the draws.
    is_calibrated : bool
        Whether the confidence was fitted on this encoder.
    is_attacked : bool
        Whether an attack's answers were given, so that identifiers can be called recovered.
    """

    findings: tuple[PersonalFinding, ...]
    summaries: Mapping[str, KindSummary]
    n_texts: int
    seed: int
    is_calibrated: bool
    is_attacked: bool = True

    @property
    def n_found(self) -> int:
        """The number of identifiers found in all texts."""
        return sum(part.n_found for part in self.summaries.values())

    @property
    def sentence(self) -> str:
        """A sentence on how many identifiers were found, recovered, confirmable and untestable."""
        if not self.summaries:
            return format_nothing_found(self.n_texts)
        counts = Counter(found.answer for found in self.findings)
        n = len(self.findings)
        sampled = f" ({n:,} tested, chosen at random)" if n < self.n_found else ""
        verb = "identifier was" if self.n_found == 1 else "identifiers were"
        recovered = f"{counts[Answer.RECOVERED]:,} recovered, " if self.is_attacked else ""
        return (
            f"{self.n_found:,} {verb} found in {_format_texts(self.n_texts)}{sampled}: "
            f"{recovered}{counts[Answer.CONFIRMABLE]:,} confirmable, "
            f"{counts[Answer.NOT_CONFIRMED]:,} not confirmed by this attack, "
            f"{counts[Answer.NOT_TESTABLE]:,} not testable."
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences on what the results do not cover."""
        lines = ["Personal data in forms that the rules do not cover."]
        if n := self.n_found - len(self.findings):
            lines.append(f"{n:,} identifiers were found and not tested: they may leak too.")
        if self.summaries:
            lines.append(
                "Stronger attacks on personal data: “not confirmed” and “not testable” are no "
                "evidence of safety."
            )
        if self.summaries and not self.is_attacked:
            lines.append("Recovery of the identifiers word by word.")
        if self.summaries and not self.is_calibrated:
            lines.append("The attacker's confidence was not calibrated for this encoder.")
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-able dict, without texts, identifiers and candidates."""
        return {
            "answer": self.sentence,
            "caveats": list(self.caveats),
            "n_texts": self.n_texts,
            "n_found": self.n_found,
            "n_tested": len(self.findings),
            "seed": self.seed,
            "kinds": {kind: part.to_dict() for kind, part in self.summaries.items()},
            "findings": [found.to_dict() for found in self.findings],
        }


def join_kinds() -> str:
    """Return the names of the kinds of personal data that are searched for, joined as a phrase."""
    return join_words([entry.plural for entry in KINDS.values()])


def format_nothing_found(n_texts: int) -> str:
    """Return the message that the rules found no personal data in n texts.

    Examples
    --------
    >>> format_nothing_found(3)[-39:]
    'This is no evidence that there is none.'
    """
    return (
        f"The rules found no personal data in {_format_texts(n_texts)}. They look for "
        f"{join_kinds()}. This is no evidence that there is none."
    )


def _format_texts(n: int) -> str:
    """Format a number of texts, as in `12 texts` or `this text`."""
    return "this text" if n == 1 else f"{n:,} texts"


@dataclass(frozen=True, eq=False)
class _Case:
    """An identifier with its row and its other places in the same text."""

    row: int
    identifier: Identifier
    others: tuple[Identifier, ...]


def measure_personal_data(
    texts: Sequence[str],
    vectors: Vectors,
    encoder: Encoder,
    answers: Sequence[Recovery] | None = None,
    *,
    n_candidates: int = DEFAULT_CANDIDATES,
    most: int = DEFAULT_MOST,
    calibrated: Confidence | None = None,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> PersonalReport:
    """Detect personal data in texts and test what an attacker learns of it from the vectors.

    Texts, identifiers and candidates stay in memory: none is cached, logged or in the report.

    Parameters
    ----------
    texts : sequence of n str
    vectors : ndarray of float32, shape (n, d)
        Of the texts.
    encoder : Encoder
        The one that the attacker has; where a known defence changed the vectors, the encoder
        behind it. Not a cached one.
    answers : sequence of n Recovery, optional
        What an attack recovered from the vectors. Without them nothing can be called recovered.
    n_candidates : int
        Values among which the true one is ranked, itself included.
    most : int
        Identifiers that are tested, drawn in turn from the kinds that were found.
    calibrated : Confidence, optional
        By default the shipped one.
    seed : int
        Of the draws.

    Raises
    ------
    InvalidInputError
        Other numbers of vectors or answers than of texts, a text that cannot be encoded, a cached
        encoder, or `n_candidates` or `most` out of range.
    MissingDependencyError
        A library that finds personal data is not installed.
    """
    _check_inputs(texts, vectors, answers, n_candidates, most)
    if isinstance(encoder, CachedEncoder):
        raise InvalidInputError(
            "encoder must not be a cached one, because the cache keeps digests of texts on disk. "
            "Give the encoder itself, as leakscope.core.encoders.load_encoder returns it."
        )
    calibrated = calibrated or Confidence.load()
    cases = _find_cases(texts, lambda f, m: on_progress(0.2 * f, m))
    chosen = _draw_cases(cases, most, seed)
    parts = parts_read(encoder, [texts[case.row] for case in chosen])
    reasons: dict[int, str] = {}
    questions: dict[int, Question] = {}
    for i, (case, part) in enumerate(zip(chosen, parts, strict=True)):
        vector = np.asarray(vectors[case.row])
        rng = np.random.default_rng([seed, case.row, case.identifier.start])
        if not _is_read(texts[case.row], case.identifier, part):
            reasons[i] = BEYOND
        elif not (np.isfinite(vector).all() and vector.any()):
            reasons[i] = NO_VECTOR
        else:
            others = draw_candidates(case.identifier, n_candidates - 1, rng)
            if len(others) < min(LEAST_CANDIDATES, n_candidates - 1):
                reasons[i] = TOO_FEW
            else:
                question = Question(texts[case.row], vector, case.identifier, others, case.others)
                questions[i] = question
    confirmed = confirm(
        encoder,
        list(questions.values()),
        calibrated=calibrated,
        on_progress=lambda f, m: on_progress(0.2 + 0.8 * f, m),
    )
    found = dict(zip(questions, confirmed, strict=True))
    words = None if answers is None else [answer.word_set for answer in answers]
    findings = [
        _make_finding(
            case,
            reasons.get(i, ""),
            found.get(i),
            questions.get(i),
            None if words is None else words[case.row],
        )
        for i, case in enumerate(chosen)
    ]
    n_found = Counter(case.identifier.kind for case in cases)
    return PersonalReport(
        findings=tuple(findings),
        summaries={
            kind: _summarise_kind(kind, n_found[kind], findings, chosen, texts, words)
            for kind in KINDS
            if n_found[kind]
        },
        n_texts=len(texts),
        seed=seed,
        is_calibrated=calibrated.fingerprint == encoder.fingerprint,
        is_attacked=words is not None,
    )


def measure_text(
    text: str,
    vector: Vectors,
    on: EncoderSpec,
    words: Collection[str],
    on_progress: OnProgress = no_progress,
) -> PersonalReport:
    """Load an encoder and test what the vector of one text reveals about its personal data.

    Parameters
    ----------
    vector : ndarray of float32, shape (1, d)
    words : collection of str
        What attacks recovered from it.
    """
    on_progress(0.0, "Searching for personal data")
    answer = Recovery(tuple(RecoveredWord(word, 1.0) for word in sorted(words)))
    encoder = shared_encoder(on)
    return measure_personal_data([text], vector, encoder, [answer], on_progress=on_progress)


def _check_inputs(
    texts: Sequence[str],
    vectors: Vectors,
    answers: Sequence[Recovery] | None,
    n_candidates: int,
    most: int,
) -> None:
    """Raise InvalidInputError if numbers of inputs differ or settings are out of range."""
    for what, n in (
        ("vectors", len(vectors)),
        ("answers", len(texts if answers is None else answers)),
    ):
        if n != len(texts):
            raise InvalidInputError(
                f"There must be as many {what} as texts ({len(texts):,}), got {n:,}. Give one per "
                "text."
            )
    if not 2 <= n_candidates <= 100_000:
        raise InvalidInputError(f"n_candidates must lie in [2, 100000], got {n_candidates}.")
    if most < 1:
        raise InvalidInputError(f"most must be at least 1, got {most}.")


def _find_cases(texts: Sequence[str], on_progress: OnProgress) -> list[_Case]:
    """Find the identifiers in texts; return one case per distinct value in each text."""
    cases = []
    for row, text in enumerate(texts):
        by_value: dict[tuple[str, str], list[Identifier]] = {}
        for found in find_personal_data(text):
            by_value.setdefault((found.kind, found.value), []).append(found)
        cases += [_Case(row, first, tuple(rest)) for first, *rest in by_value.values()]
        on_progress((row + 1) / len(texts), f"{row + 1:,} of {len(texts):,} texts searched")
    return cases


def _draw_cases(cases: Sequence[_Case], most: int, seed: int) -> list[_Case]:
    """Draw up to `most` cases at random, in turn from each kind; return them in text order."""
    rng = np.random.default_rng([seed, 5])
    by_kind = [
        rng.permutation([i for i, case in enumerate(cases) if case.identifier.kind == kind])
        for kind in KINDS
    ]
    turns = [int(own[turn]) for turn in range(len(cases)) for own in by_kind if turn < len(own)]
    return [cases[i] for i in sorted(turns[:most])]


def _is_read(text: str, identifier: Identifier, part: str) -> bool:
    """Return whether an identifier lies within the part of the text that the encoder reads."""
    return part == text or len(normalize("NFKC", text[: identifier.end])) <= len(part)


_RUN = regex.compile(r"[\p{L}\p{N}\p{M}]+")


def _split_value(value: str) -> frozenset[str]:
    """Return the set of runs of letters and digits in a value, in lower case."""
    return frozenset(_RUN.findall(normalize("NFKC", value).lower()))


def _make_finding(
    case: _Case,
    reason: str,
    confirmed: Confirmation | None,
    question: Question | None,
    words: AbstractSet[str] | None,
) -> PersonalFinding:
    """Decide the outcome for one identifier from its confirmation and the recovered words."""
    is_recovered = words is not None and _split_value(case.identifier.value) <= words
    found = case.identifier
    finding = PersonalFinding(
        kind=found.kind,
        row=case.row,
        start=found.start,
        end=found.end,
        answer=Answer.RECOVERED if is_recovered else Answer.NOT_CONFIRMED,
    )
    if confirmed is None or question is None:
        if is_recovered and reason != BEYOND:
            return finding
        return replace(finding, answer=Answer.NOT_TESTABLE, reason=reason)
    by_words = None
    if words is not None:
        own = len(_split_value(found.value) & words)
        other = np.array([len(_split_value(value) & words) for value in question.candidates])
        by_words = 1 + float((other > own).sum()) + float((other == own).sum()) / 2
    return replace(
        finding,
        answer=Answer.CONFIRMABLE if confirmed.rank == 1 and not is_recovered else finding.answer,
        rank=confirmed.rank,
        n_candidates=confirmed.n_candidates,
        confidence=confirmed.confidence,
        without_truth=confirmed.without_truth,
        rank_by_words=by_words,
    )


CLAIMED = 0.95
"""Confidence from which the attacker claims a candidate."""


def _summarise_kind(
    kind: str,
    n_found: int,
    findings: Sequence[PersonalFinding],
    chosen: Sequence[_Case],
    texts: Sequence[str],
    words: Sequence[AbstractSet[str]] | None,
) -> KindSummary:
    """Compute the shares and median ranks over the findings of one kind of personal data."""
    own = [(f, case) for f, case in zip(findings, chosen, strict=True) if f.kind == kind]

    def share(
        holds: Callable[[PersonalFinding], bool],
        of: Callable[[PersonalFinding], bool] = lambda _: True,
        chance: float = math.nan,
    ) -> Score:
        """Return the percentage of findings for which `holds` is true, over distinct texts."""
        kept = [(holds(f), texts[f.row]) for f, _ in own if of(f)]
        if not kept:
            return Score(math.nan)
        units = units_of([text for _, text in kept])
        score = rate_by_document(np.array([hit for hit, _ in kept]), units)
        return replace(score, n=len(set(units)), n_trials=len(kept), chance=chance)

    ranked = [f for f, _ in own if f.rank is not None]
    by_words = [f.rank_by_words for f in ranked if f.rank_by_words is not None]
    chance = 100 * float(np.mean([1 / f.n_candidates for f in ranked])) if ranked else math.nan
    guessed = math.nan
    if words is not None and own:
        # Answers for another row: the baseline of words that fit any text.
        units = units_of(texts)
        shifted = [words[next_distinct_row(units, f.row)] for f, _ in own]
        hits = [
            _split_value(case.identifier.value) <= other
            for (_, case), other in zip(own, shifted, strict=True)
        ]
        guessed = 100 * float(np.mean(hits)) if len(set(units)) > 1 else math.nan
    return KindSummary(
        kind=kind,
        n_found=n_found,
        n_tested=len(own),
        recovered=Score(math.nan)
        if words is None
        else share(lambda f: f.answer is Answer.RECOVERED, chance=guessed),
        confirmable=share(lambda f: f.answer is Answer.CONFIRMABLE, chance=chance),
        learned=share(lambda f: f.answer in (Answer.RECOVERED, Answer.CONFIRMABLE)),
        not_confirmed=share(lambda f: f.answer is Answer.NOT_CONFIRMED),
        not_testable=share(lambda f: f.answer is Answer.NOT_TESTABLE),
        wrong_claims=share(
            lambda f: (f.without_truth or 0.0) >= CLAIMED, lambda f: f.without_truth is not None
        ),
        median_rank=float(np.median([f.rank for f in ranked])) if ranked else math.nan,
        median_rank_by_words=float(np.median(by_words)) if by_words else math.nan,
    )
