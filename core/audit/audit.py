"""The audit of a source: read it, find its encoder, attack it, and say what could not be tested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core import __version__
from core.audit.expected import ExpectedF1
from core.audit.identification import (
    LEAST_VECTORS,
    Identification,
    agreement_with_texts,
    identify,
    known_space,
)
from core.audit.leakage import (
    Leakage,
    expect_leakage,
    masked,
    measure_leakage,
    strongest_attack,
)
from core.audit.sources import Batch, Sample, VectorSource, read_sample
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, no_progress
from core.results import EvaluationResult, Score
from core.specs import EncoderSpec

N_CHECKED_TEXTS = 50
"""Texts of the source that are encoded to see whether the encoder is the right one."""


@dataclass(frozen=True, kw_only=True)
class AuditSpec:
    """What an audit is asked to do.

    Attributes
    ----------
    n : int
        Rows to attack, drawn at random.
    seed : int
        Of the draw and of the intervals.
    encoder : str or None
        The encoder that the user names; None to identify it.
    candidates : tuple of str
        Encoders that may have made the vectors, beside the bundled one.
    attack : str or None
        None for the strongest that needs no training.
    n_rows_shown : int
        Rows that leak most, in the report.
    shows_words : bool
        Whether their words are shown as they are, and not masked.
    """

    n: int = 1_000
    seed: int = 0
    encoder: str | None = None
    candidates: tuple[str, ...] = ()
    attack: str | None = None
    n_rows_shown: int = 10
    shows_words: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What an audit found.

    Attributes
    ----------
    source : str
        How it is called, without credentials.
    sample : Sample
    identification : Identification
    leakage : Leakage or None
        None where nothing could be attacked.
    not_tested : tuple of str
        What the audit says nothing about, each with the reason.
    """

    source: str
    spec: AuditSpec
    sample: Sample
    identification: Identification
    leakage: Leakage | None
    not_tested: tuple[str, ...] = field(default=())

    @property
    def f1(self) -> Score | None:
        """Token-set F1 with its interval, beside guessing; None where it could not be measured."""
        return None if self.leakage is None else self.leakage.f1

    def recovered(self, kind: str) -> Score | None:
        """Return the per cent of `names` or `numbers` recovered; None where not measured."""
        return None if self.leakage is None else self.leakage.recovered.get(kind)

    @property
    def sentence(self) -> str:
        """The answer, in one sentence with its figures."""
        if self.leakage is None:
            return f"What leaks could not be measured. {self.not_tested[0]}"
        f1, result = self.leakage.f1, self.leakage.result
        if result is None:
            return (
                f"An attacker with the vectors is expected to recover their words with an F1 of "
                f"{f1.said(0, with_n=True)}. No text is known, so this is an estimate."
            )
        return (
            f"An attacker with the vectors recovers {result.scores.score('recall').said(0)} % of "
            f"the words that the attack can name (F1 {f1.said(with_n=True)}; guessing gets "
            f"{f1.chance:.0f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-able data; it holds no text, and words only as `spec` says."""
        found: dict[str, Any] = {
            "leakscope": __version__,
            "source": self.source,
            "n_rows": self.sample.n_rows,
            "n_rows_of_zeros": self.sample.n_zero,
            "dimension": int(self.sample.vectors.shape[1]),
            "stored_as": self.sample.stored_as,
            "norms": list(self.sample.norms),
            "n_sampled": len(self.sample.ids),
            "seed": self.spec.seed,
            "encoder": self.identification.encoder or "unknown",
            "encoder_evidence": self.identification.reason,
            "answer": self.sentence,
            "not_tested": list(self.not_tested),
        }
        if self.leakage is None:
            return found | {"token_set_f1": None, "token_set_f1_ci95": None, "n": 0}
        result, f1 = self.leakage.result, self.leakage.f1
        return found | {
            "attacker": self.leakage.attack,
            "access": _access_of(self.leakage.attack),
            "n": f1.n,
            "is_estimate": result is None,
            **f1.to_record("token_set_f1"),
            **({} if result is None else _measured(result)),
            "recovered": {kind: score.to_dict() for kind, score in self.leakage.recovered.items()},
            "rows_that_leak_most": [
                {
                    "row": row.row,
                    "f1": row.f1,
                    "n_words": row.n_words,
                    "recovered": [w if self.spec.shows_words else masked(w) for w in row.recovered],
                }
                for row in self.leakage.rows[: self.spec.n_rows_shown]
            ],
            "f1_by_row": {row_digest(row.row): round(row.f1, 4) for row in self.leakage.rows},
        }


def _measured(result: EvaluationResult) -> dict[str, Any]:
    """Return what is known beside F1 where texts are."""
    scores = result.scores
    return {
        "unit": scores.unit,
        "n_distinct": scores.n_distinct,
        **scores.score("recall").to_record("recall"),
        **scores.score("precision").to_record("precision"),
        "prior_f1": result.baseline.token_set_f1,
        "vocabulary_coverage": result.vocabulary_coverage,
    }


def row_digest(row: str) -> str:
    """Return twelve hexadecimal digits that stand for a row's name, which may be personal."""
    return hashlib.sha256(row.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _access_of(attack: str) -> str:
    from core.attacks.inversion.registry import INVERSION_ATTACKS

    return INVERSION_ATTACKS[attack].access.needs


def audit(
    source: VectorSource,
    spec: AuditSpec | None = None,
    *,
    texts: Sequence[str] | None = None,
    on_progress: OnProgress = no_progress,
) -> AuditReport:
    """Measure what leaks from the vectors of a source.

    Every vector is read and checked; `spec.n` of them, drawn at random, are attacked. Where texts
    are known the result is measured; an audit without texts says which encoder made the vectors.

    Parameters
    ----------
    source : VectorSource
        From `open_source`.
    texts : sequence of str, optional
        What the vectors were made from, in the order of the rows; by default the source's own.

    Returns
    -------
    AuditReport

    Raises
    ------
    InvalidInputError
        The source cannot be read, there are not as many texts as vectors, or `n` is below 30.
    MissingDependencyError
        The library that reads the source is not installed.
    """
    spec = spec or AuditSpec()
    if spec.n < LEAST_VECTORS:
        raise InvalidInputError(f"n must be at least {LEAST_VECTORS}, got {spec.n}.")
    numbered = source if texts is None else _WithTexts(source, texts)
    sample = read_sample(
        numbered, spec.n, seed=spec.seed, on_progress=lambda f, m: on_progress(0.0, m)
    )
    if texts is not None and sample.n_rows != len(texts):
        raise InvalidInputError(
            f"{source.label} holds {sample.n_rows:,} vectors, and there are {len(texts):,} texts. "
            "Give one text for each vector, in the same order."
        )
    told, encoder = _find_encoder(sample, spec, lambda f, m: on_progress(0.3 * f, m))
    not_tested = []
    if not sample.is_whole:
        n_rest = sample.n_rows - len(sample.ids)
        not_tested.append(f"{n_rest:,} of {sample.n_rows:,} vectors: a sample was attacked.")
    leakage = None
    if encoder is None:
        not_tested.insert(0, "The encoder is unknown, so nothing was attacked.")
    else:
        leakage, left_out = _attacked(
            sample, encoder, spec, source.label, lambda f, m: on_progress(0.3 + 0.7 * f, m)
        )
        not_tested = left_out + not_tested
        if told.is_changed:
            not_tested.append(
                "The vectors were changed after encoding, and the attack does not know how: an "
                "attacker who does may recover more. `evaluate --defence` measures that attacker."
            )
    return AuditReport(
        source=source.label,
        spec=spec,
        sample=sample,
        identification=told,
        leakage=leakage,
        not_tested=tuple(not_tested),
    )


def _find_encoder(
    sample: Sample, spec: AuditSpec, on_progress: OnProgress
) -> tuple[Identification, Encoder | None]:
    """Return which encoder made the vectors, opened where it is known."""
    from core.encoders import load_encoder

    names = [spec.encoder] if spec.encoder else list(dict.fromkeys(("minilm", *spec.candidates)))
    opened = {name: load_encoder(EncoderSpec(name=name)) for name in names}
    known = [i for i, text in enumerate(sample.texts or ()) if text and text.strip()]
    known = known[:N_CHECKED_TEXTS]
    reasons = []
    if known:
        texts = [(sample.texts or ())[i] or "" for i in known]
        for encoder in opened.values():
            found = agreement_with_texts(encoder, texts, sample.vectors[known], on_progress)
            if found.encoder is not None:
                return found, encoder
            reasons.append(found.reason)
        return Identification(None, " ".join(reasons), is_certain=True), None
    spaces = {
        name: known_space(encoder, on_progress)
        for name, encoder in opened.items()
        if encoder.dimension == sample.vectors.shape[1]
    }
    found = identify(sample.vectors, list(spaces.values()), seed=spec.seed)
    name = next((n for n, space in spaces.items() if space.encoder == found.encoder), None)
    return found, None if name is None else opened[name]


def _attacked(
    sample: Sample, encoder: Encoder, spec: AuditSpec, name: str, on_progress: OnProgress
) -> tuple[Leakage | None, list[str]]:
    """Return what the attack recovers, and what that says nothing about."""
    from core.attacks.inversion.shipped import open_attack, shipped_digest

    chosen = spec.attack or strongest_attack(encoder)
    if any(sample.texts or ()):
        attack = open_attack(chosen, encoder, on_progress)
        found = measure_leakage(sample, encoder, attack, name=name, on_progress=on_progress)
        return found, _left_out(sample, found.result)
    line = ExpectedF1.load()
    if chosen != line.attack or shipped_digest(encoder, chosen) != line.attack_sha256:
        return None, [
            f"No texts are known, and for the attack {chosen} on {encoder.name} no estimate was "
            "calibrated. Give the texts with --texts."
        ]
    attack = open_attack(chosen, encoder, on_progress)
    found = expect_leakage(sample, encoder, attack, line, on_progress=on_progress)
    return found, ["No text is known: the words were not compared with any."]


def _left_out(sample: Sample, result: EvaluationResult | None) -> list[str]:
    """Return what the figures say nothing about."""
    found: list[str] = []
    n_without = sum(1 for text in sample.texts or () if not text)
    if n_without:
        found.append(f"{n_without:,} sampled rows: the source holds no text for them.")
    if result is not None and result.vocabulary_coverage < 1:
        found.append(
            f"{100 * (1 - result.vocabulary_coverage):.0f} % of the words, mostly names and "
            "numbers, are not on the attack's word list: untested, possibly recoverable."
        )
    if result is not None and result.n_unread:
        found.append(
            f"{result.n_unread:,} words in {result.n_texts_cut:,} texts lie beyond what the "
            "encoder reads."
        )
    return found


class _WithTexts:
    """A source with texts from elsewhere, one for each row."""

    def __init__(self, source: VectorSource, texts: Sequence[str]) -> None:
        self.label, self._source, self._texts = source.label, source, texts

    @contextmanager
    def opened(self) -> Iterator[Iterator[Batch]]:
        """Give the batches with their texts."""
        with self._source.opened() as batches:
            yield self._joined(batches)

    def _joined(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        start = 0
        for batch in batches:
            part: list[str | None] = [*self._texts[start : start + len(batch.ids)]]
            part += [None] * (len(batch.ids) - len(part))
            start += len(batch.ids)
            yield Batch(batch.vectors, batch.ids, part)
