"""The audit of a source: read it, find its encoder, attack it, and say what could not be tested."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
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
    median_cosine,
)
from core.audit.leakage import (
    Leakage,
    Recovered,
    expect_leakage,
    masked,
    measure_leakage,
    strongest_attack,
    usable_rows,
)
from core.audit.sources import Batch, Sample, VectorSource, read_sample
from core.errors import InvalidInputError
from core.protocols import Encoder, OnProgress, no_progress
from core.results import EvaluationResult, Score
from core.specs import EncoderSpec

N_CHECKED_TEXTS = 50
"""Texts of the sample that are encoded to choose among encoders; of the chosen one, all are."""

CHANGED = (
    "The vectors were changed after encoding, or are of a related encoder, and the attack does not "
    "know how: an attacker who does may recover more. `evaluate --defence` measures that attacker."
)


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
        """Token-set F1 with its interval and the guessing baseline; None where not measured."""
        return None if self.leakage is None else self.leakage.f1

    def recovered(self, kind: str) -> Recovered | None:
        """Return what was recovered of `names` or `numbers`; None where it was not measured."""
        return None if self.leakage is None else self.leakage.recovered.get(kind)

    @property
    def is_estimate(self) -> bool:
        """Whether F1 was estimated, since no text is known."""
        return self.leakage is not None and self.leakage.result is None

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

    @property
    def f1_by_row(self) -> dict[str, float]:
        """The measured F1 of each row, by a digest of its name; empty where it was estimated."""
        if self.leakage is None or self.is_estimate:
            return {}
        return {row_digest(row.row): round(row.f1, 4) for row in self.leakage.rows}

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
            return found | {
                "token_set_f1": None,
                "token_set_f1_ci95": None,
                "n": 0,
                "f1_by_row": {},
            }
        result, f1 = self.leakage.result, self.leakage.f1
        return found | {
            "attacker": self.leakage.attack,
            "access": _access_of(self.leakage.attack),
            "n": f1.n,
            "is_estimate": self.is_estimate,
            **f1.to_record("token_set_f1"),
            **({} if result is None else _measured(result)),
            "recovered": {
                kind: {**part.share.to_dict(), "n_listed": part.n_listed, "n_all": part.n_all}
                for kind, part in self.leakage.recovered.items()
            },
            "rows_that_leak_most": [
                {
                    "row": printable(row.row),
                    "f1": row.f1,
                    "n_words": row.n_words,
                    "recovered": [w if self.spec.shows_words else masked(w) for w in row.recovered],
                }
                for row in self.leakage.rows[: self.spec.n_rows_shown]
            ],
            "f1_by_row": self.f1_by_row,
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


def printable(name: str) -> str:
    """Return a row's name without what would break a line, or steer a terminal or a log."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)


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
    found, encoder = _find_encoder(sample, spec, lambda f, m: on_progress(0.3 * f, m))
    leakage, not_tested = None, ["The encoder is unknown, so nothing was attacked."]
    if encoder is not None:
        leakage, not_tested = _attacked(
            sample, encoder, spec, source.label, lambda f, m: on_progress(0.3 + 0.7 * f, m)
        )
    if leakage is not None:
        not_tested += _untested_rows(sample)
        if found.is_changed:
            not_tested.append(CHANGED)
    return AuditReport(
        source=source.label,
        spec=spec,
        sample=sample,
        identification=found,
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
    known = usable_rows(sample.texts)
    if known:
        every = [(sample.texts or ())[i] or "" for i in known]
        spread = range(0, len(known), max(1, len(known) // N_CHECKED_TEXTS))
        few = [every[i] for i in spread], sample.vectors[[known[i] for i in spread]]
        cosines = {name: median_cosine(encoder, *few) for name, encoder in opened.items()}
        best = max(opened, key=lambda name: cosines[name])
        found = agreement_with_texts(opened[best], every, sample.vectors[known], on_progress)
        return found, None if found.encoder is None else opened[best]
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
    if usable_rows(sample.texts):
        attack = open_attack(chosen, encoder, on_progress)
        found = measure_leakage(sample, encoder, attack, name=name, on_progress=on_progress)
        return found, [] if found.result is None else _untested_words(found.result, found.recovered)
    line = ExpectedF1.load()
    if chosen != line.attack or shipped_digest(encoder, chosen) != line.attack_sha256:
        return None, [
            f"No texts are known, and no estimate was calibrated for the attack {chosen} on "
            f"{encoder.name}. Give the texts with --texts."
        ]
    attack = open_attack(chosen, encoder, on_progress)
    expected = expect_leakage(sample, encoder, attack, line, on_progress=on_progress)
    if expected is None:
        return None, [
            "No texts are known, and the attack's answers are unlike those that the estimate was "
            "calibrated on: the vectors may be defended, or the texts of another kind. Give the "
            "texts with --texts."
        ]
    return expected, ["No text is known: the words were not compared with any."]


def _untested_words(result: EvaluationResult, recovered: Mapping[str, Recovered]) -> list[str]:
    """Return which words the figures say nothing about."""
    found: list[str] = []
    if result.vocabulary_coverage < 1:
        kinds = " and ".join(
            f"{part.n_all - part.n_listed:,} of {part.n_all:,} {kind}"
            for kind, part in recovered.items()
        )
        found.append(
            f"{100 * (1 - result.vocabulary_coverage):.0f} % of the words are not on the attack's "
            f"word list ({kinds} among them): untested, possibly recoverable."
        )
    if result.n_unread:
        found.append(
            f"{result.n_unread:,} words in {result.n_texts_cut:,} texts lie beyond what the "
            "encoder reads."
        )
    return found


def _untested_rows(sample: Sample) -> list[str]:
    """Return which rows the figures say nothing about."""
    found: list[str] = []
    n_rest = sample.n_rows - sample.n_zero - len(sample.ids)
    if n_rest:
        found.append(f"{n_rest:,} of {sample.n_rows:,} vectors: a sample was attacked.")
    if sample.n_zero:
        found.append(f"{sample.n_zero:,} vectors of zeros, which hold nothing.")
    if sample.texts is not None and (n := len(sample.texts) - len(usable_rows(sample.texts))):
        found.append(f"{n:,} sampled rows without a text that can be encoded.")
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
