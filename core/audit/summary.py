"""An audit report, parsed from the JSON of `audit --json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from leakscope.core.assets import ASSETS
from leakscope.core.errors import ArtifactError
from leakscope.core.formatting import format_rate
from leakscope.core.results import Score
from leakscope.core.storage.artifacts import UNFIT, read_json

EXAMPLE = ASSETS / "audit" / "example.json"
"""The shipped report on news, which the page shows before the first audit."""

ANSWERS_MEAN = (
    "**Recovered**: the attack names every part of the value. **Confirmable**: an attacker who "
    "knows the rest of the text ranks the true value first among 1,000 candidates. **Not "
    "confirmed** and **not testable** are no evidence of safety."
)
"""The outcomes for personal data, as pages, slides and reports explain them."""

NOT_A_REPORT = "Give the output of `audit --json`."


@dataclass(frozen=True)
class KindLeak:
    """The share of one kind of words that was recovered.

    Attributes
    ----------
    kind : str
        `names` or `numbers`.
    share : Score
        Per cent of the words in the attack's vocabulary; NaN if there are none.
    n_listed, n_all : int
        Words of the kind in the vocabulary, and in all. The rest is untested.
    """

    kind: str
    share: Score
    n_listed: int
    n_all: int


@dataclass(frozen=True)
class RowWords:
    """A row that leaks, with its recovered words.

    Attributes
    ----------
    row : str
    f1 : float
        In [0, 1].
    n_words : int or None
        Words that the attack could recover; None where no text is known.
    recovered : tuple of str
        As the report shows them: masked, unless it was asked for the words.
    """

    row: str
    f1: float
    n_words: int | None
    recovered: tuple[str, ...]


@dataclass(frozen=True)
class PersonalKind:
    """What an attacker learns about personal data of one kind.

    Attributes
    ----------
    kind : str
        A key of `leakscope.core.audit.personal.kinds.KINDS`.
    n_found, n_tested : int
    recovered, confirmable, not_confirmed, not_testable : Score
        Per cent of those tested.
    """

    kind: str
    n_found: int
    n_tested: int
    recovered: Score
    confirmable: Score
    not_confirmed: Score
    not_testable: Score

    @property
    def title(self) -> str:
        """The kind's name, capitalised and with spaces, for figures."""
        return self.kind.replace("_", " ").capitalize()

    @property
    def n_confirmable(self) -> int:
        """The number of tested identifiers of this kind that an attacker can confirm."""
        return round(self.n_tested * self.confirmable.value / 100)


@dataclass(frozen=True)
class PersonalData:
    """What an attacker learns about the personal data in the sampled texts.

    Attributes
    ----------
    answer : str
    kinds : tuple of PersonalKind
        Of each kind that was found.
    """

    answer: str
    kinds: tuple[PersonalKind, ...]

    @property
    def n_tested(self) -> int:
        """The number of identifiers that were tested, over all kinds."""
        return sum(kind.n_tested for kind in self.kinds)

    @property
    def n_learned(self) -> int:
        """The number of tested identifiers that an attacker recovers or can confirm."""
        return sum(
            kind.n_confirmable + round(kind.n_tested * kind.recovered.value / 100)
            for kind in self.kinds
            if kind.n_tested
        )

    @property
    def by_kind(self) -> str:
        """A sentence on how many identifiers of each kind can be confirmed; empty if untested."""
        told = [
            f"{kind.title.lower()} {format_rate(kind.confirmable, count=kind.n_confirmable)}"
            for kind in self.kinds
            if kind.n_tested
        ]
        return f"Confirmable, by kind: {'; '.join(told)}." if told else ""


@dataclass(frozen=True)
class Alternative:
    """The leakage and search recall of the same rows under one alternative.

    Attributes
    ----------
    title : str
        A storage format, a defence, redacted texts, or a number of known pairs.
    f1 : Score or None
        Token-set F1 in per cent; None where it was not tested.
    recall : Score or None
        Per cent of the 10 nearest rows that a search still finds; None where it finds all.
    """

    title: str
    f1: Score | None
    recall: Score | None


@dataclass(frozen=True)
class Comparison:
    """The leakage under alternatives of one kind.

    Attributes
    ----------
    kind : str
        A key of `leakscope.core.audit.what_if.COMPARISONS`.
    answer : str
    alternatives : tuple of Alternative
    """

    kind: str
    answer: str
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, kw_only=True)
class AuditSummary:
    """The results of an audit, without vectors and texts.

    Attributes
    ----------
    source, date, stored_as, answer : str
    encoder : str or None
        None where it is unknown.
    evidence : str
        Why the encoder is known, or unknown.
    n_rows, n_sampled, dimension : int
    attacker, access : str
        Empty where nothing was attacked.
    defence : str
        The defence of the vectors, which the attacker knows; empty for none.
    seed : int
    f1 : Score or None
        Token-set F1 in per cent, with what guessing reaches; None where it could not be measured.
    is_estimate : bool
        Whether no text was known.
    recall, precision : Score or None
        None without texts.
    coverage : float or None
        Share of the words in the attack's vocabulary, in [0, 1].
    kinds : tuple of KindLeak
    rows : tuple of RowWords
        The rows that leak most, first.
    personal : PersonalData or None
        None if it was not searched for.
    what_if : tuple of Comparison
        The what-if comparisons.
    not_tested : tuple of str
    """

    source: str
    date: str
    answer: str
    encoder: str | None
    evidence: str
    n_rows: int
    n_sampled: int
    dimension: int
    stored_as: str
    attacker: str
    access: str
    defence: str
    seed: int
    f1: Score | None
    is_estimate: bool
    recall: Score | None
    precision: Score | None
    coverage: float | None
    kinds: tuple[KindLeak, ...]
    rows: tuple[RowWords, ...]
    personal: PersonalData | None
    what_if: tuple[Comparison, ...]
    not_tested: tuple[str, ...]

    @classmethod
    def from_dict(cls, stored: Any, name: str = "The file") -> Self:
        """Build the summary from an audit report's parsed JSON.

        Parameters
        ----------
        name : str
            How the message calls it.

        Raises
        ------
        ArtifactError
            It is not an audit report.
        """
        try:
            if not isinstance(stored, dict):
                raise TypeError("no object")
            is_measured = stored["token_set_f1"] is not None
            is_estimate = bool(stored.get("is_estimate", False))
            has_texts = is_measured and not is_estimate
            encoder = str(stored["encoder"])
            return cls(
                source=str(stored["source"]),
                date=str(stored["date"]),
                answer=str(stored["answer"]),
                encoder=None if encoder == "unknown" else encoder,
                evidence=str(stored["encoder_evidence"]),
                n_rows=int(stored["n_rows"]),
                n_sampled=int(stored["n_sampled"]),
                dimension=int(stored["dimension"]),
                stored_as=str(stored["stored_as"]),
                attacker=str(stored.get("attacker", "")),
                access=str(stored.get("access", "")),
                defence=str(stored.get("defence") or ""),
                seed=int(stored["seed"]),
                f1=_parse_score(stored, "token_set_f1") if is_measured else None,
                is_estimate=is_estimate,
                recall=_parse_score(stored, "recall") if has_texts else None,
                precision=_parse_score(stored, "precision") if has_texts else None,
                coverage=(
                    None
                    if (share := stored.get("vocabulary_coverage")) is None
                    else min(1.0, max(0.0, float(share)))
                ),
                kinds=tuple(
                    KindLeak(
                        str(kind),
                        _check_finite(Score.from_dict(part)),
                        int(part["n_listed"]),
                        int(part["n_all"]),
                    )
                    for kind, part in dict(stored.get("recovered", {})).items()
                ),
                rows=tuple(map(_parse_row, stored.get("rows_that_leak_most", ()))),
                personal=_parse_personal(stored.get("personal_data")),
                what_if=tuple(
                    comparison_of(str(kind), table)
                    for kind, table in dict(stored.get("what_if", {})).items()
                ),
                not_tested=tuple(_parse_strings(stored["not_tested"])),
            )
        except UNFIT as error:
            raise ArtifactError(f"{name} is not an audit report. {NOT_A_REPORT}") from error


def example_summary() -> AuditSummary:
    """Load the shipped audit report on news texts.

    Raises
    ------
    ArtifactError
        Its report is missing or damaged.
    """
    return AuditSummary.from_dict(read_json(EXAMPLE), str(EXAMPLE))


def _parse_score(stored: Mapping[str, Any], measure: str) -> Score:
    """Read the score of a measure, with its chance level, from a report's dict."""
    chance = "prior_f1" if measure == "token_set_f1" else "chance"
    return _check_finite(Score.of_record(stored, measure, chance))


def _check_finite(score: Score) -> Score:
    """Return the score unchanged; raise ValueError if any of its numbers is infinite."""
    if any(map(math.isinf, (score.value, score.chance, score.ci95.low, score.ci95.high))):
        raise ValueError("infinite")
    return score


def _parse_personal(stored: Any) -> PersonalData | None:
    """Build PersonalData from that section of a report; return None if there is none."""
    if stored is None:
        return None
    names = ("recovered", "confirmable", "not_confirmed", "not_testable")
    kinds = [
        PersonalKind(
            str(kind),
            int(part["n_found"]),
            int(part["n_tested"]),
            *(_check_finite(Score.from_dict(part[name])) for name in names),
        )
        for kind, part in stored["kinds"].items()
    ]
    return PersonalData(str(stored["answer"]), tuple(kinds))


def comparison_of(kind: str, table: Mapping[str, Any]) -> Comparison:
    """Build a Comparison from a report's what-if table; of an unknown kind, only its answer."""
    found: list[tuple[str, Any, Any]] = []
    if kind == "storage":
        found = [
            (f"{row['format']}, {int(row['bytes_per_vector']):,} bytes", row["f1"], row)
            for row in table["formats"]
        ]
    elif kind == "remedy":
        found = [("no defence", table["undefended"], {})]
        found += [(str(row["defence"]), row["f1"], row) for row in table["remedies"]]
    elif kind == "redaction":
        found = [
            ("original texts", table["f1_before"], {}),
            ("texts without personal data", table["f1_after"], table),
        ]
    elif kind == "rotation":
        found = [("not rotated", table["unrotated"], {})]
        found += [
            (f"rotated, {int(row['k']):,} known pairs", row["f1"], {}) for row in table["points"]
        ]
    return Comparison(
        kind,
        str(table["answer"]),
        tuple(
            Alternative(
                title, _parse_optional_score(f1), _parse_optional_score(row.get("recall_at_10"))
            )
            for title, f1, row in found
        ),
    )


def _parse_optional_score(stored: Any) -> Score | None:
    """Build a score from its dict; return None for None."""
    return None if stored is None else _check_finite(Score.from_dict(stored))


def _parse_strings(stored: Any) -> list[str]:
    """Return a JSON list as a list of strings; raise TypeError for anything else."""
    if not isinstance(stored, list | tuple):
        raise TypeError("no list")
    return [str(each) for each in stored]


def _parse_row(stored: Mapping[str, Any]) -> RowWords:
    """Build a RowWords from the dict of one row in a report."""
    n_words = stored["n_words"]
    return RowWords(
        str(stored["row"]),
        float(stored["f1"]),
        None if n_words is None else int(n_words),
        tuple(_parse_strings(stored["recovered"])),
    )
