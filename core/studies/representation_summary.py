"""Rows of the studies of encoders and of classification as points: usefulness beside leakage."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.encoders import ENCODERS
from core.encoders.fitted import FITTED_ON_TEXTS
from core.errors import ArtifactError, CoreError
from core.results import Score
from core.studies import more_texts
from core.studies.classification import VIEWS
from core.studies.domains import DOMAINS
from core.studies.provenance import Provenance
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import read_rows, rows_of

__all__ = [
    "FILES",
    "MORE_TEXTS",
    "SHIPPED",
    "YOURS",
    "AttackScore",
    "Leak",
    "Point",
    "Representations",
    "beside_own",
    "load_representations",
]

SHIPPED = ASSETS / "representations"
"""What was measured on news, by encoder."""

FILES = {"encoders": "inversion.json", "classification": "classification.json"}
"""The study, and the file that holds its rows."""

YOURS = "yours: "
"""Before the name of an encoder of which a visitor brought the rows."""

MORE_TEXTS = "more_texts.json"
"""What attacks read that learnt from far more texts; `core.studies.more_texts` makes it from
docs/results/inversion-bbc.json."""


@dataclass(frozen=True)
class AttackScore:
    """How much an attack reads from the vectors of an encoder.

    Attributes
    ----------
    f1 : Score
        Token-set F1, with that of the prior-only attacker as `chance`.
    n_fitted_on : int
        Auxiliary texts.
    recall : float or None
        The per cent of the words that is read, where it is kept.
    all_words : float or None
        F1 in which words that the attack cannot name count as missed, where it is kept.
    provenances : tuple of Provenance
        Of the cells that it is a mean of, where they tell.
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
    """What an attack reads, fitted on as many texts as those beside it.

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
    """What an attack reads from an encoder, and what the encoder is good for, where measured."""

    leak: Leak
    useful: Score | None


@dataclass(frozen=True)
class Representations:
    """Both studies.

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
        What attacks read that learnt from far more texts, where that was measured.
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
        """Return what an encoder is good for; one that is not fitted here knows one domain."""
        is_fitted = encoder in FITTED_ON_TEXTS
        domains = (domain,) if is_fitted else (domain, *DOMAINS)
        return next((s for d in domains if (s := self.uses.get((encoder, d, view)))), None)

    def taught_more(self, leak: AttackScore) -> list[AttackScore]:
        """Return what reads more from the same encoder for having learnt from more texts.

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
        most = max(above, key=lambda score: score.f1.value, default=None)
        return [s for s in above if s.attack == leak.attack and s != most] + (
            [most] if most else []
        )

    def most_read(self, encoder: str, domain: str) -> AttackScore | None:
        """Return the attack that reads most from an encoder, of all that were measured."""
        known = [*self.leaks.values(), *self.more_texts]
        own = [score for score in known if (score.encoder, score.domain) == (encoder, domain)]
        return max(own, key=lambda score: score.f1.value, default=None)

    def points(
        self, encoders: Sequence[str], attacks: Sequence[str], domain: str, view: str
    ) -> list[Point]:
        """Return a point for each of the encoders and attacks that was measured."""
        return [
            Point(leak, self.useful(encoder, domain, view))
            for encoder in encoders
            for attack in attacks
            if (leak := self.leaks.get((encoder, attack, domain)))
        ]


def load_representations(folder: Path = SHIPPED) -> Representations:
    """Read what `python -m core study encoders`, `classification` and `more_texts` wrote.

    Means over seeds, of the most auxiliary texts and without variants of an attack.

    Raises
    ------
    ArtifactError
        A file is missing, damaged or holds something else; the message names the command that
        makes it.
    """
    parts = {study: _rows(folder, study) for study in FILES}
    leaks, uses = ([row for row in parts[study] if not row.error] for study in FILES)
    try:
        found = Representations(
            _leaks(leaks),
            _uses(uses),
            {study: str(rows[0]["target"]) for study, rows in parts.items()},
            sum(len(failures(rows)) for rows in parts.values()),
            _more_texts(folder),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, CoreError) as error:
        files = " or ".join([*FILES.values(), MORE_TEXTS])
        raise ArtifactError(
            f"{files} in {folder} does not hold rows that can be read ({error}). Make them anew: "
            + " ".join(map(_command, (*FILES, more_texts.STUDY)))
        ) from error
    return found


def beside_own(found: Representations, files: Sequence[Mapping[str, Any]]) -> Representations:
    """Return what was measured with what files of one's own hold beside it, under names of theirs.

    Parameters
    ----------
    files : sequence of mappings
        What the studies of encoders and of classification wrote, as JSON.

    Raises
    ------
    ArtifactError
        A file holds something else.
    """
    rows: dict[str, list[Row]] = {study: [] for study in FILES}
    for file in files:
        # The studies bear the name that they had when their first rows were written.
        study = {"representations": "encoders"}.get(str(file.get("study")), file.get("study"))
        if study not in rows:
            raise ArtifactError(
                f"Rows of {str(study)[:40]!r} are not shown here: send those of "
                f"{' or '.join(FILES)}, which `core study` writes."
            )
        try:
            rows[study] += [row for row in rows_of(file) if not row.error]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"A file does not hold rows of {study} ({error}).") from error
    try:
        leaks, uses = _leaks(rows["encoders"]), _uses(rows["classification"])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, CoreError) as error:
        raise ArtifactError(f"Rows of yours cannot be read ({error}).") from error
    own = {(f"{YOURS}{e}", a, d): replace(leak, encoder=f"{YOURS}{e}")
           for (e, a, d), leak in leaks.items()}  # fmt: skip
    used = {(f"{YOURS}{e}", d, v): score for (e, d, v), score in uses.items()}
    return replace(found, leaks={**found.leaks, **own}, uses={**found.uses, **used})


def _rows(folder: Path, study: str) -> list[Row]:
    path = folder / FILES.get(study, MORE_TEXTS)
    try:
        return read_rows(path, study)
    except ArtifactError as error:
        raise ArtifactError(
            f"{path} with the rows of the {study} study is missing or damaged. Make it: "
            + _command(study)
        ) from error


def _command(study: str) -> str:
    if study == more_texts.STUDY:
        return str(more_texts.COMMAND)
    out = SHIPPED.relative_to(SHIPPED.parents[1]) / FILES[study]
    return f"python -m core study {study} --target FILE --out {out.as_posix()}"


def _grouped(
    rows: Sequence[Row], one: str, two: str, three: str
) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows by the values of three entries, which have to name something."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (str(row[one]), str(row[two]), str(row[three]))
        _check(**dict(zip((one, two, three), key, strict=True)))
        found.setdefault(key, []).append(row)
    return found


def _leaks(rows: Sequence[Row]) -> dict[tuple[str, str, str], Leak]:
    found = {}
    for key, group in _grouped(rows, "encoder", "attack", "domain").items():
        own = _main(group)
        found[key] = Leak(
            *key,
            _mean(own, "token_set_f1"),
            int(own[0]["n_fitted_on"]),
            precision=_mean(own, "precision").value,
            recall=_mean(own, "recall").value,
            weighted_f1=_mean(own, "weighted_f1").value,
            own_vocabulary_f1=_mean(own, "own_vocabulary_f1").value,
            all_words=_mean_kept(own, "unrestricted_f1"),
            provenances=_told(own),
        )
    return found


def _told(rows: Sequence[Row]) -> tuple[Provenance, ...]:
    return tuple(row.provenance for row in rows if row.provenance is not None)


def _more_texts(folder: Path) -> tuple[AttackScore, ...]:
    rows = _rows(folder, more_texts.STUDY)
    return tuple(
        AttackScore(
            *key,
            _mean(own, "token_set_f1"),
            int(own[0]["n_fitted_on"]),
            recall=_mean_kept(own, "recall"),
            all_words=_mean_kept(own, "unrestricted_f1"),
            provenances=_told(own),
        )
        for key, own in _grouped(rows, "encoder", "attack", "domain").items()
    )


def _main(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the most auxiliary texts and the fewest settings: no variants."""
    most = max(int(row["n_auxiliary"]) for row in rows)
    largest = [row for row in rows if row["n_auxiliary"] == most]
    plain = min((row["settings"] for row in largest), key=len)
    return [row for row in largest if row["settings"] == plain]


def _uses(rows: Sequence[Row]) -> dict[tuple[str, str, str], Score]:
    grouped = _grouped(rows, "encoder", "domain", "view").items()
    return {key: _mean(own, "macro_f1") for key, own in grouped}


def _mean(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean over seeds of a score between 0 and 100."""
    for row in rows:
        score = row.scores[measure]
        ends = (score.ci95.low, score.ci95.high) if score.has_interval else ()
        for value in (score.value, *([] if math.isnan(score.chance) else [score.chance]), *ends):
            if not 0 <= value <= 100:  # NaN as well
                raise ValueError(f"{value!r} is no score between 0 and 100")
    return mean_row_score(rows, measure)


def _mean_kept(rows: Sequence[Row], measure: str) -> float | None:
    """Return the mean over seeds where each holds it."""
    return _mean(rows, measure).value if all(measure in row.scores for row in rows) else None


def _check(**names: str) -> None:
    """Raise ValueError for a name that nothing here has."""
    families: dict[str, Container[str]]
    families = {"attack": INVERSION_ATTACKS, "domain": DOMAINS, "view": VIEWS, "encoder": ENCODERS}
    for kind, name in names.items():
        if name.partition(":")[0] not in families[kind]:
            raise ValueError(f"no {kind} is called {name[:40]!r}")
