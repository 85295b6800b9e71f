"""The audit of a source: sample it, identify its encoder, attack it, list what was not tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakscope.core import __version__
from leakscope.core.attacks.inversion.evaluation import attack_name
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.audit.expected import ExpectedF1
from leakscope.core.audit.identification import (
    LEAST_VECTORS,
    Identification,
    agreement_with_texts,
    identify_among,
    median_cosine,
)
from leakscope.core.audit.leakage import (
    Leakage,
    Recovered,
    estimate_leakage,
    mask_word,
    measure_answers,
    same_text,
    strongest_attack,
    usable_rows,
)
from leakscope.core.audit.parts import Attacker, AttackerSpec, Spread, answer_in_parts
from leakscope.core.audit.sources import Batch, Sample, VectorSource, read_sample
from leakscope.core.audit.sources.protocol import ChangedSource
from leakscope.core.errors import InvalidInputError
from leakscope.core.protocols import (
    Encoder,
    InversionAttack,
    OnProgress,
    Vectors,
    monotonic_progress,
    no_progress,
)
from leakscope.core.results import EvaluationResult, Recovery, Score
from leakscope.core.specs import (
    AttackSpec,
    DefenceSpec,
    EncoderSpec,
    setting,
    validate_settings,
)

if TYPE_CHECKING:
    from leakscope.core.audit.aligned import AlignedSample
    from leakscope.core.audit.personal.report import PersonalReport
    from leakscope.core.audit.what_if import Table

N_CHECKED_TEXTS = 50
"""Texts of the sample that are encoded to choose among encoders; the chosen one encodes all."""

CHANGED = (
    "The vectors were changed after encoding, or come from a related encoder. The attack does not "
    "know how; an attacker who does may recover more. Name the defence with --defence."
)


UNLIKE = (
    "Nothing shows that the named defence was applied to the vectors. An attacker who knows how "
    "they were really changed may recover more."
)


@dataclass(frozen=True, kw_only=True)
class AuditSpec:
    """Settings of an audit: sample size, encoder, attack, defence, and what else to measure.

    Attributes
    ----------
    candidates : tuple of str
        Encoders that may have made the vectors, beside the bundled one.
    defence : DefenceSpec or None
        What the vectors are behind: the attacker knows it.
    n_identifiers : int
        Items of personal data to test, at most; 0 to look for none.
    remedies : tuple of DefenceSpec
        Defences that `remedy` compares.
    n_rows_shown : int
        Rows that leak most, in the report.
    shows_words : bool
        Whether their words are shown as they are, and not masked.
    """

    encoder: str | None = setting(
        None, "encoder of the vectors: minilm, st:ID, mlm:ID (default: identified)"
    )
    attack: str | None = setting(None, "default: the strongest shipped attack for the encoder")
    n: int = setting(
        500,
        "rows to attack, chosen at random; all are read and checked",
        low=LEAST_VECTORS,
        flag="sample",
    )
    seed: int = setting(0, "random seed of the sample", low=0)
    candidates: tuple[str, ...] = ()
    defence: DefenceSpec | None = None
    n_identifiers: int = 0
    n_candidates: int = setting(
        1_000,
        "candidates for each item of personal data, including the true one",
        low=10,
        flag="among",
    )
    what_if: tuple[str, ...] = setting(
        (),
        "measure what leaks on 100 of the rows with other storage formats, recommended defences, "
        "redacted personal data, or a keyed rotation",
        choices=("storage", "remedy", "redaction", "rotation"),
    )
    remedies: tuple[DefenceSpec, ...] = ()
    n_rows_shown: int = 10
    shows_words: bool = False


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Results of an audit: encoder, leakage, personal data, and what was not tested.

    Attributes
    ----------
    source : str
        How it is called, without credentials.
    sample : Sample
    identification : Identification
    leakage : Leakage or None
        None where nothing could be attacked.
    not_tested : tuple of str
        What the audit does not cover, each with the reason.
    personal : PersonalReport or None
        What an attacker learns of the personal data in the texts; None where it was not looked for.
    what_if : mapping of str to Table
        Results of the what-if comparisons, by the names of `spec.what_if`.
    alignment : AlignedSample or None
        How the vectors of another encoder were mapped onto a known one's.
    date : str
        Of the audit in UTC, such as `2026-03-01`.
    """

    source: str
    spec: AuditSpec
    sample: Sample = field(repr=False)
    identification: Identification
    leakage: Leakage | None = field(repr=False)
    not_tested: tuple[str, ...] = field(default=())
    personal: PersonalReport | None = None
    what_if: Mapping[str, Table] = field(default_factory=dict, repr=False)
    alignment: AlignedSample | None = field(default=None, repr=False)
    date: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")

    @property
    def f1(self) -> Score | None:
        """Token-set F1 with its interval and the guessing baseline; None where not measured."""
        return None if self.leakage is None else self.leakage.f1

    def recovered(self, kind: str) -> Recovered | None:
        """Return the recovered share of `names` or `numbers`; None if not measured."""
        return None if self.leakage is None else self.leakage.recovered.get(kind)

    @property
    def is_estimate(self) -> bool:
        """Whether F1 is an estimate, because no text is known."""
        return self.leakage is not None and self.leakage.result is None

    @property
    def sentence(self) -> str:
        """A sentence, with numbers, on how much an attacker recovers."""
        if self.leakage is None:
            return f"The leakage could not be measured. {self.not_tested[0]}"
        f1, result = self.leakage.f1, self.leakage.result
        if result is None:
            return (
                "An attacker who has the vectors recovers their words with an estimated F1 of "
                f"{f1.in_text(0)}, n = {f1.n:,} vectors. It is an estimate, because no text is "
                "known."
            )
        recall, listed = result.scores.score("recall"), result.vocabulary_coverage
        title = INVERSION_ATTACKS[self.leakage.attack].title.lower()
        value, interval = recall.parts(0)
        f1_value, f1_interval = f1.parts()
        of_all = ""
        if listed < 1:
            of_all = (
                f" That is about {recall.value * listed:.0f} % of all words; another "
                f"{100 * (1 - listed):.0f} % were not tested."
            )
        return (
            "Of the words in these texts that the attack can name, an attacker who has the vectors "
            f"recovers {value} % (95 % CI {interval}).{of_all} The F1, a score for missed and "
            f"wrong words together, is {f1_value} (95 % CI {f1_interval}; {f1.n:,} vectors, "
            f"{title}); guessing reaches {f1.chance:.0f}."
        )

    @property
    def f1_by_row(self) -> dict[str, float]:
        """A dict from the digest of each row's name to its measured F1; empty for an estimate."""
        if self.leakage is None or self.is_estimate:
            return {}
        return self.leakage.f1_by_row

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-able dict without texts; words are masked by default."""
        from leakscope.core.audit.known_defence import describe_defence

        defence = self.spec.defence
        found: dict[str, Any] = {
            "leakscope": __version__,
            "date": self.date,
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
            "defence": None if defence is None else describe_defence(defence),
            "what_if": {name: table.to_dict() for name, table in self.what_if.items()},
            "alignment": None if self.alignment is None else self.alignment.to_dict(),
            "personal_data": None if self.personal is None else self.personal.to_dict(),
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
            "access": INVERSION_ATTACKS[self.leakage.attack].access.needs,
            "n": f1.n,
            "is_estimate": self.is_estimate,
            **f1.to_record("token_set_f1"),
            **({} if result is None else _measured_fields(result)),
            "recovered": self.leakage.recovered_to_dict(),
            "rows_that_leak_most": [
                {
                    "row": printable(row.row),
                    "f1": row.f1,
                    "n_words": row.n_words,
                    "recovered": [
                        w if self.spec.shows_words else mask_word(w) for w in row.recovered
                    ],
                }
                for row in self.leakage.rows[: self.spec.n_rows_shown]
            ],
            "f1_by_row": self.f1_by_row,
            "same_text": same_text(self.leakage.rows),
        }


def _measured_fields(result: EvaluationResult) -> dict[str, Any]:
    """Return recall, precision and coverage of an evaluation as a JSON-able dict."""
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
    """Return a row's name with each non-printable character replaced by U+FFFD."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)


def audit(
    source: VectorSource,
    spec: AuditSpec | None = None,
    *,
    texts: Sequence[str] | None = None,
    pairs: VectorSource | None = None,
    like: Sequence[str] | None = None,
    folder: Path | None = None,
    spread: Spread | None = None,
    on_progress: OnProgress = no_progress,
) -> AuditReport:
    """Audit the vectors of a source: measure what an attacker recovers from them.

    Every vector is read and checked; `spec.n` of them, drawn at random, are attacked. If texts are
    known, the leakage is measured; without texts, the encoder is identified and the leakage
    estimated.

    Parameters
    ----------
    source : VectorSource
        From `open_source`.
    texts : sequence of str, optional
        What the vectors were made from, in the order of the rows; by default the source's own.
    pairs : VectorSource, optional
        Texts with vectors of the same encoder as the source's, where that is another than the
        known ones: the vectors are mapped onto those of `spec.encoder`, by default the bundled
        encoder.
    like : sequence of str, optional
        Texts of the same kinds, with which an unknown rotation of the known encoder's vectors is
        undone without pairs. With `pairs`, the attacker's own texts beside the bundled ones.
    folder : Path, optional
        Where finished parts are stored, so that a stopped audit resumes. They hold words of the
        texts; by default nothing is stored.
    spread : callable, optional
        Attacks parts on other machines; by default all are attacked here.

    Returns
    -------
    AuditReport

    Raises
    ------
    InvalidInputError
        The source cannot be read, there are not as many texts as vectors, `n` is below 30, or the
        defence is none that stored vectors can be behind.
    MissingDependencyError
        A library that reads the source, or finds personal data, is not installed.
    """
    spec = spec or AuditSpec()
    if spec.defence is not None and (folder is not None or spread is not None):
        raise InvalidInputError(
            "A defence cannot be combined with --resume, --jobs or --ray. Leave these out."
        )
    on_progress = monotonic_progress(on_progress)
    validate_settings(spec)
    if spec.n_identifiers:
        from leakscope.core.audit.personal.libraries import check_libraries

        check_libraries()
    numbered = source
    if texts is not None:
        numbered = ChangedSource(source, partial(_attach_texts, texts=texts))
    sample = read_sample(
        numbered, spec.n, seed=spec.seed, on_progress=lambda f, m: on_progress(0.0, m)
    )
    if texts is not None and sample.n_rows != len(texts):
        raise InvalidInputError(
            f"{source.label} contains {sample.n_rows:,} vectors, but there are {len(texts):,} "
            "texts. Give one text per vector, in the same order."
        )
    aligned: AlignedSample | None = None
    start: OnProgress = lambda f, m: on_progress(0.2 * f, m)  # noqa: E731
    if pairs is not None or like is not None:
        trains = spec.attack is None and folder is None and spread is None
        aligned, encoder = _align_sample(sample, numbered, spec, pairs, like, trains, start)
        sample, found, defence = aligned.sample, aligned.identification, None
    else:
        found, encoder, defence = _find_encoder(sample, spec, start)
    leakage, personal = None, None
    not_tested = ["The encoder is unknown, so nothing was attacked."]
    answers: Sequence[Recovery] | None = None
    if encoder is not None:
        from leakscope.core.audit.comparison import rescale_to_encoder
        from leakscope.core.defences.adaptive_attack import defended_encoder

        sample = rescale_to_encoder(sample, defended_encoder(encoder.opened, defence))
        attack = AttackSpec(name=spec.attack or encoder.strongest)
        attacking: OnProgress = lambda f, m: on_progress(0.2 + 0.6 * f, m)  # noqa: E731

        def answer(vectors: Vectors) -> list[Recovery]:
            """Attack vectors part by part; return one answer per vector."""
            return answer_in_parts(
                attacker, vectors, folder=folder, spread=spread, on_progress=attacking
            )

        if defence is not None:
            from leakscope.core.audit.known_defence import measure_leakage_known

            leakage, strongest = measure_leakage_known(
                sample,
                encoder.opened,
                defence,
                attack,
                name=source.label,
                seed=sample.seed,
                on_progress=attacking,
            )
            not_tested = [f"Attackers other than {strongest} who also know the defence."]
        elif aligned is not None and not usable_rows(sample.texts):
            not_tested = [
                "No texts are known, and no estimate was calibrated for aligned vectors. Give the "
                "texts with --texts."
            ]
        elif usable_rows(sample.texts):
            attacker = encoder.make_attacker(attack)
            leakage, answers = measure_answers(
                sample, attacker.encoder, attacker.attack, answer, name=source.label
            )
            not_tested = []
        elif (line := ExpectedF1.for_attack(attack.name, encoder.opened)) is None:
            not_tested = [
                "No texts are known, and no estimate was calibrated for the attack "
                f"{attack.name} on {encoder.opened.name}. Give the texts with --texts."
            ]
        else:
            attacker = encoder.make_attacker(attack)
            leakage = estimate_leakage(sample, answer(sample.vectors), line)
            not_tested = [
                "The words themselves: no text is known to compare them with."
                if leakage
                else "No texts are known, and the attack's answers differ from those that the "
                "estimate was calibrated on. The vectors may be defended, or the texts of another "
                "kind. Give the texts with --texts."
            ]
        if leakage is not None and leakage.result is not None:
            not_tested += _untested_words(leakage.result, leakage.recovered)
        if aligned is not None:
            not_tested.append(
                "Attackers with more pairs, or with an attack trained on the other encoder: they "
                "may recover more."
            )
        if spec.n_identifiers and usable_rows(sample.texts):
            shown: OnProgress = lambda f, m: on_progress(0.8 + 0.2 * f, m)  # noqa: E731
            personal = _measure_personal_data(sample, encoder.opened, defence, answers, spec, shown)
            not_tested += personal.caveats
        elif spec.n_identifiers:
            not_tested.append("Personal data: no text is known, so it could not be searched for.")
    tables: dict[str, Table] = {}
    if spec.what_if and (encoder is None or defence is not None or aligned is not None):
        not_tested.append(
            "What if: alternatives can be compared only on unchanged vectors of a known encoder."
        )
    elif spec.what_if and encoder is not None and not usable_rows(sample.texts):
        not_tested.append("What if: no text is known.")
    elif spec.what_if and encoder is not None:
        from leakscope.core.audit.what_if import compare_all

        tables = compare_all(
            spec.what_if,
            sample,
            encoder.opened,
            spec.remedies,
            attack=spec.attack,
            seed=spec.seed,
            name=source.label,
            on_progress=lambda f, m: on_progress(0.9 + 0.1 * f, m),
        )
    if leakage is not None:
        not_tested += _untested_rows(sample)
        if found.is_changed:
            not_tested.append(CHANGED if spec.defence is None else UNLIKE)
    return AuditReport(
        source=source.label,
        spec=spec,
        sample=sample,
        identification=found,
        leakage=leakage,
        not_tested=tuple(not_tested),
        personal=personal,
        alignment=aligned,
        what_if=tables,
    )


def _align_sample(
    sample: Sample,
    source: VectorSource,
    spec: AuditSpec,
    pairs: VectorSource | None,
    like: Sequence[str] | None,
    trains: bool,
    on_progress: OnProgress,
) -> tuple[AlignedSample, _NamedEncoder | None]:
    """Align a sample to the named or bundled encoder; return it, and the encoder or None."""
    from leakscope.core.audit.aligned import align_with_pairs, align_without_pairs
    from leakscope.core.encoders import load_encoder

    if spec.defence is not None:
        raise InvalidInputError("A defence and an alignment cannot be combined. Give one of them.")
    name = spec.encoder or "minilm"
    encoder = load_encoder(EncoderSpec(name=name))
    if pairs is not None:
        found = align_with_pairs(
            sample,
            pairs,
            encoder,
            source=source,
            like=like or (),
            trains=trains,
            seed=spec.seed,
            on_progress=on_progress,
        )
    else:
        found = align_without_pairs(
            sample, source, like or (), encoder, seed=spec.seed, on_progress=on_progress
        )
    is_known = found.identification.encoder is not None
    return found, _NamedEncoder(name, encoder, found.attack) if is_known else None


def _measure_personal_data(
    sample: Sample,
    encoder: Encoder,
    defence: DefenceSpec | None,
    answers: Sequence[Recovery] | None,
    spec: AuditSpec,
    on_progress: OnProgress,
) -> PersonalReport:
    """Measure what an attacker learns about the personal data in a sample's texts."""
    from leakscope.core.audit.personal.report import measure_personal_data
    from leakscope.core.defences.adaptive_attack import deterministic_part

    known = sample.take(usable_rows(sample.texts))
    found = measure_personal_data(
        known.known_texts,
        known.vectors,
        encoder if defence is None else deterministic_part(encoder, defence),
        answers,
        n_candidates=spec.n_candidates,
        most=spec.n_identifiers,
        seed=spec.seed,
        on_progress=on_progress,
    )
    named = (replace(each, row_name=printable(known.ids[each.row])) for each in found.findings)
    return replace(found, findings=tuple(named))


@dataclass(frozen=True)
class _NamedEncoder:
    """A loaded encoder with the name that loads it, and an attack trained for it if any.

    Attributes
    ----------
    name : str
    opened : Encoder
    trained : InversionAttack or None
        The attack trained for the audited vectors; None for a shipped one.
    """

    name: str
    opened: Encoder
    trained: InversionAttack | None = None

    @property
    def strongest(self) -> str:
        """The name of the default attack: the trained one, or else the strongest shipped one."""
        return attack_name(self.trained) if self.trained else strongest_attack(self.opened)

    def make_attacker(self, attack: AttackSpec) -> Attacker:
        """Build an attacker on this encoder from an attack's spec."""
        spec = AttackerSpec(attack, EncoderSpec(name=self.name))
        if self.trained is not None:
            return Attacker(spec, self.trained, self.opened)
        return Attacker.opened(spec, self.opened)


def _find_encoder(
    sample: Sample, spec: AuditSpec, on_progress: OnProgress
) -> tuple[Identification, _NamedEncoder | None, DefenceSpec | None]:
    """Identify a sample's encoder and check its defence; return the evidence and both (or None)."""
    from leakscope.core.encoders import load_encoder

    names = [spec.encoder] if spec.encoder else list(dict.fromkeys(("minilm", *spec.candidates)))
    opened = {name: load_encoder(EncoderSpec(name=name)) for name in names}
    known = sample.take(usable_rows(sample.texts))
    few = known.take(range(0, len(known.ids), max(1, len(known.ids) // N_CHECKED_TEXTS)))
    if spec.defence is not None:
        encoder = _NamedEncoder(names[0], opened[names[0]])
        return _check_defence(encoder, few, spec.defence, on_progress)
    if known.ids:
        best = names[0]
        if len(opened) > 1:
            best = max(opened, key=lambda n: median_cosine(opened[n], few.known_texts, few.vectors))
        found = agreement_with_texts(opened[best], known.known_texts, known.vectors, on_progress)
        return found, None if found.encoder is None else _NamedEncoder(best, opened[best]), None
    found, name = identify_among(sample.vectors, opened, seed=spec.seed, on_progress=on_progress)
    return found, None if name is None else _NamedEncoder(name, opened[name]), None


def _check_defence(
    encoder: _NamedEncoder, few: Sample, defence: DefenceSpec, on_progress: OnProgress
) -> tuple[Identification, _NamedEncoder | None, DefenceSpec | None]:
    """Check that a sample is behind the named defence; return evidence, encoder and defence."""
    from leakscope.core.audit.known_defence import agreement_with_defence

    if not few.ids:
        raise InvalidInputError(
            "A defence can only be checked against the texts. Give them with --texts."
        )
    found = agreement_with_defence(
        encoder.opened, defence, few.known_texts, few.vectors, on_progress
    )
    if found.identification.encoder is None:
        return found.identification, None, None
    return found.identification, encoder, None if found.is_undefended else defence


def _untested_words(result: EvaluationResult, recovered: Mapping[str, Recovered]) -> list[str]:
    """Return sentences on the words that the scores do not cover; an empty list if none."""
    found: list[str] = []
    if result.vocabulary_coverage < 1:
        kinds = " and ".join(
            f"{part.n_all - part.n_listed:,} of {part.n_all:,} {kind}"
            for kind, part in recovered.items()
        )
        found.append(
            f"The attack cannot name {100 * (1 - result.vocabulary_coverage):.0f} % of the words. "
            f"These include {kinds}. Treat these words as leaked."
        )
    if result.n_unread:
        found.append(
            f"{result.n_unread:,} words in {result.n_texts_cut:,} texts: the encoder does not read "
            "that far."
        )
    return found


def _untested_rows(sample: Sample) -> list[str]:
    """Return sentences on the rows of a source that were not attacked; an empty list if none."""
    found: list[str] = []
    n_rest = sample.n_rows - sample.n_zero - len(sample.ids)
    if n_rest:
        found.append(f"{n_rest:,} of {sample.n_rows:,} vectors: only a sample was attacked.")
    if sample.n_zero:
        found.append(f"{sample.n_zero:,} vectors of zeros, which contain nothing.")
    if sample.texts is not None and (n := len(sample.texts) - len(usable_rows(sample.texts))):
        found.append(f"{n:,} sampled rows without a text that can be encoded.")
    return found


def _attach_texts(batches: Iterator[Batch], *, texts: Sequence[str]) -> Iterator[Batch]:
    """Yield each batch with its slice of separately given texts, one per row."""
    start = 0
    for batch in batches:
        part: list[str | None] = [*texts[start : start + len(batch.ids)]]
        part += [None] * (len(batch.ids) - len(part))
        start += len(batch.ids)
        yield Batch(batch.vectors, batch.ids, part)
