"""Summary of the encoder and classification studies: leakage and utility of each encoder."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS
from leakscope.core.encoders import ENCODERS
from leakscope.core.encoders.registry import FITTED_ON_TEXTS
from leakscope.core.errors import ArtifactError, CoreError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable
from leakscope.core.results.tables import read_rows, rows_from_json
from leakscope.core.studies.domains import DOMAINS
from leakscope.core.studies.inversion import more_texts
from leakscope.core.studies.inversion.classification import VIEWS

SHIPPED = RESULTS
"""The folder of the shipped rows, measured on news."""

FILES = {"encoders": "representations.json", "classification": "classification.json"}
"""Each study, with the file of its rows."""

WORD_VECTORS = "word-vectors.json"
"""Further rows of the encoder study, measured by a separate command."""

YOURS = "yours: "
"""The prefix of encoders whose rows a user uploaded."""

MORE_TEXTS = "more-texts.json"
"""Results of attacks trained on far more texts, from results/inversion-bbc.json."""


@dataclass(frozen=True)
class AttackScore:
    """The F1 of an attack on an encoder's vectors, with the number of its training texts.

    Attributes
    ----------
    f1 : Score
        Token-set F1, with that of the prior-only attacker as `chance`.
    n_fitted_on : int
        Auxiliary texts.
    recall : float or None
        Recall of words in per cent, if recorded.
    all_words : float or None
        F1 if words that the attack cannot name count as missed, if recorded.
    provenances : tuple of Provenance
        The known provenances of the cells that it averages.
    """

    encoder: str
    attack: str
    domain: str
    f1: Score
    n_fitted_on: int
    recall: float | None = field(default=None, kw_only=True)
    all_words: float | None = field(default=None, kw_only=True)
    provenances: tuple[Provenance, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Leak(AttackScore):
    """An attack's scores on an encoder, all attacks fitted on equally many texts.

    Attributes
    ----------
    own_vocabulary_f1 : float
        F1 over all words of the attack's own vocabulary (C22, Table A.2).
    """

    recall: float = field(kw_only=True)
    precision: float
    weighted_f1: float
    own_vocabulary_f1: float


@dataclass(frozen=True)
class Point:
    """An attack's leakage from an encoder, with the encoder's utility where measured."""

    leak: Leak
    useful: Score | None


@dataclass(frozen=True)
class Representations:
    """The results of the encoder and classification studies.

    Attributes
    ----------
    leaks : dict
        By encoder, attack and domain.
    uses : dict
        Macro-F1 of sorting news, by encoder, domain and view; the largest class as `chance`.
    targets : dict
        Study to the name of its collection.
    n_failed : int
        Cells that could not be measured.
    more_texts : tuple of AttackScore
        Scores of attacks that were trained on far more texts, if measured.
    """

    leaks: dict[tuple[str, str, str], Leak]
    uses: dict[tuple[str, str, str], Score]
    targets: dict[str, str]
    n_failed: int
    more_texts: tuple[AttackScore, ...] = ()

    @property
    def encoders(self) -> list[str]:
        """The encoders whose leakage was measured, in their order."""
        return list(dict.fromkeys(encoder for encoder, _, _ in self.leaks))

    @property
    def attacks(self) -> list[str]:
        """The attacks that were measured, in their order."""
        return list(dict.fromkeys(attack for _, attack, _ in self.leaks))

    def useful(self, encoder: str, domain: str, view: str) -> Score | None:
        """Return an encoder's utility, its macro-F1 on news; of any domain if it is pretrained."""
        is_fitted = encoder in FITTED_ON_TEXTS
        domains = (domain,) if is_fitted else (domain, *DOMAINS)
        return next((s for d in domains if (s := self.uses.get((encoder, d, view)))), None)

    def better_trained(self, leak: AttackScore) -> list[AttackScore]:
        """Return the scores of attacks that learned from more texts and recover significantly more.

        The same attack first, then the one that reads most; those alone whose interval lies
        above that of `leak`.
        """
        above = [
            score
            for score in self.more_texts
            if (score.encoder, score.domain) == (leak.encoder, leak.domain)
            and score.n_fitted_on > leak.n_fitted_on
            and score.f1.ci95.low > leak.f1.ci95.high
        ]
        most = sorted(above, key=lambda score: -score.f1.value)[:1]
        return [s for s in above if s.attack == leak.attack and s not in most] + most

    def most_read(self, encoder: str, domain: str) -> AttackScore | None:
        """Return the highest score of an attack on an encoder in a domain; None if not measured."""
        known = [*self.leaks.values(), *self.more_texts]
        own = [score for score in known if (score.encoder, score.domain) == (encoder, domain)]
        return max(own, key=lambda score: score.f1.value, default=None)

    def points(
        self, encoders: Sequence[str], attacks: Sequence[str], domain: str, view: str
    ) -> list[Point]:
        """Return a point, leakage and utility, per given encoder and attack that was measured."""
        return [
            Point(leak, self.useful(encoder, domain, view))
            for encoder in encoders
            for attack in attacks
            if (leak := self.leaks.get((encoder, attack, domain)))
        ]


def load_representations(folder: Path = SHIPPED) -> Representations:
    """Read the shipped results on encoders, classification and more texts; average over seeds.

    Only rows of the most auxiliary texts and without variants of an attack count.

    Raises
    ------
    ArtifactError
        A file is missing, damaged or holds something else; the message names the command that
        makes it.
    """
    parts = {study: _read_study(folder, study) for study in FILES}
    leaks, uses = (parts[study].measured for study in FILES)
    try:
        found = Representations(
            _mean_leaks(leaks),
            _mean_utilities(uses),
            {study: str(rows[0]["target"]) for study, rows in parts.items()},
            sum(len(rows.failed) for rows in parts.values()),
            _read_more_texts_scores(folder),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, CoreError) as error:
        files = " or ".join([*FILES.values(), MORE_TEXTS])
        raise ArtifactError(
            f"{files} in {folder} does not contain readable rows ({error}). Create them again: "
            + " ".join(map(_study_command, (*FILES, more_texts.STUDY)))
        ) from error
    return found


def with_uploaded(found: Representations, files: Sequence[Mapping[str, Any]]) -> Representations:
    """Return the shipped results with those of a user's files added, under prefixed names.

    Parameters
    ----------
    files : sequence of mappings
        What the studies of encoders and of classification wrote, as JSON.

    Raises
    ------
    ArtifactError
        A file holds something else.
    """
    rows = {study: ResultTable() for study in FILES}
    for file in files:
        study = str(file.get("study"))
        if study not in rows:
            raise ArtifactError(
                f"This page does not show rows of {study[:40]!r}. Upload the output of `leakscope "
                f"study {' or '.join(FILES)}`."
            )
        try:
            rows[study] += rows_from_json(file).measured
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"A file does not contain rows of {study} ({error}).") from error
    try:
        leaks, uses = _mean_leaks(rows["encoders"]), _mean_utilities(rows["classification"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, CoreError) as error:
        raise ArtifactError(f"Your rows cannot be read ({error}).") from error
    own = {
        (f"{YOURS}{e}", a, d): replace(leak, encoder=f"{YOURS}{e}")
        for (e, a, d), leak in leaks.items()
    }
    used = {(f"{YOURS}{e}", d, v): score for (e, d, v), score in uses.items()}
    return replace(found, leaks={**found.leaks, **own}, uses={**found.uses, **used})


def _read_study(folder: Path, study: str) -> ResultTable:
    """Read the rows of a study from a folder; an error names the command that makes them."""
    path = folder / FILES.get(study, MORE_TEXTS)
    more = folder / WORD_VECTORS
    try:
        rows = read_rows(path, study)
        if study == "encoders" and more.exists():
            rows += read_rows(more, study)
        return rows
    except ArtifactError as error:
        raise ArtifactError(
            f"{path} with the rows of the study {study} is missing or damaged. Create it: "
            + _study_command(study)
        ) from error


def _study_command(study: str) -> str:
    """Return the command line that makes a study's file, as text."""
    if study == more_texts.STUDY:
        return str(more_texts.COMMAND)
    return f"leakscope study {study} --target FILE --out results/{FILES[study]}"


def _group_checked(
    rows: ResultTable, one: str, two: str, three: str
) -> dict[tuple[str, str, str], ResultTable]:
    """Group rows by three entries; raise ValueError if a value is no known name."""
    found = {(a, b, c): own for (a, b, c), own in rows.group_by(one, two, three).items()}
    for key in found:
        _check_names(**dict(zip((one, two, three), key, strict=True)))
    return found


def _mean_leaks(rows: ResultTable) -> dict[tuple[str, str, str], Leak]:
    """Average rows over seeds to a `Leak` by encoder, attack and domain."""
    found = {}
    for key, group in _group_checked(rows, "encoder", "attack", "domain").items():
        own = _main_rows(group)
        measures = ("precision", "recall", "weighted_f1", "own_vocabulary_f1")
        values = {name: _mean(own, name).value for name in measures}
        found[key] = Leak(*key, **_attack_fields(own) | values)
    return found


def _attack_fields(rows: ResultTable) -> dict[str, Any]:
    """Average rows over seeds to the fields of an `AttackScore` that every study records."""
    return {
        "f1": _mean(rows, "token_set_f1"),
        "n_fitted_on": int(rows[0]["n_fitted_on"]),
        "all_words": _mean_if_recorded(rows, "unrestricted_f1"),
        "provenances": tuple(each for each in rows.provenances if each is not None),
    }


def _read_more_texts_scores(folder: Path) -> tuple[AttackScore, ...]:
    """Read the shipped scores of the attacks that were trained on far more texts."""
    rows = _read_study(folder, more_texts.STUDY)
    return tuple(
        AttackScore(*key, **_attack_fields(own), recall=_mean_if_recorded(own, "recall"))
        for key, own in _group_checked(rows, "encoder", "attack", "domain").items()
    )


def _main_rows(rows: ResultTable) -> ResultTable:
    """Return the rows with the most auxiliary texts and the fewest settings: no variants."""
    largest = rows.where(n_auxiliary=max(map(int, rows.column("n_auxiliary"))))
    return largest.where(settings=min(largest.column("settings"), key=len))


def _mean_utilities(rows: ResultTable) -> dict[tuple[str, str, str], Score]:
    """Average macro-F1 over seeds by encoder, domain and view."""
    grouped = _group_checked(rows, "encoder", "domain", "view").items()
    return {key: _mean(own, "macro_f1") for key, own in grouped}


def _mean(rows: ResultTable, measure: str) -> Score:
    """Return the mean over seeds of a score of rows; raise ValueError if it is not in [0, 100]."""
    for row in rows:
        score = row.scores[measure]
        ends = (score.ci95.low, score.ci95.high) if score.has_interval else ()
        for value in (score.value, *([] if math.isnan(score.chance) else [score.chance]), *ends):
            if not 0 <= value <= 100:  # also for NaN
                raise ValueError(f"{value!r} is not a score between 0 and 100")
    return rows.mean(measure)


def _mean_if_recorded(rows: ResultTable, measure: str) -> float | None:
    """Return the mean over seeds of a score of rows; None unless every row has it."""
    return _mean(rows, measure).value if all(measure in row.scores for row in rows) else None


def _check_names(**names: str) -> None:
    """Raise ValueError if an attack, domain, view or encoder has no known name."""
    families: dict[str, Container[str]]
    families = {"attack": INVERSION_ATTACKS, "domain": DOMAINS, "view": VIEWS, "encoder": ENCODERS}
    for kind, name in names.items():
        if name.partition(":")[0] not in families[kind]:
            raise ValueError(f"there is no {kind} {name[:40]!r}")
