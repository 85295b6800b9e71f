"""What an attacker with a list of candidates finds behind each defence, read from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.assets import ASSETS
from core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from core.errors import ArtifactError, InvalidInputError
from core.results import Score
from core.said import in_a_row
from core.studies.listed_texts import KINDS
from core.studies.provenance import Provenance
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table, read_rows
from core.studies.tradeoff_point import strength, upper_end

__all__ = [
    "SHIPPED",
    "Listed",
    "listed_measure",
    "listed_told",
    "load_listed",
    "markdown",
    "shares_said",
    "shipped_listed",
    "summarise",
    "undefended_said",
]

SHIPPED = ASSETS / "listed"
"""What was measured for the bundled encoder."""

_MEASURE = "hits_1"
_BASE = "none"
"""The defence that all are held against."""

_Place = tuple[str, tuple[tuple[str, Any], ...], str]


def listed_measure(attacker: str) -> str:
    """Return what a row calls the per cent of targets whose candidate an attacker ranks first."""
    return f"{_MEASURE}: {attacker}"


@dataclass(frozen=True)
class Listed:
    """What each attacker with a list finds, averaged over seeds.

    Attributes
    ----------
    n_candidates : int
        On each list.
    found : dict
        Defence, settings and kind of candidate to the score of each attacker.
    provenances : tuple of Provenance
        When, by what and where it was measured, where that is told.
    """

    encoder: str
    n_candidates: int
    found: Mapping[_Place, Mapping[str, Score]]
    provenances: tuple[Provenance, ...] = field(default=(), compare=False)

    @property
    def defences(self) -> list[tuple[str, tuple[tuple[str, Any], ...]]]:
        """Each defence with its settings, in the order measured."""
        return list(dict.fromkeys((defence, settings) for defence, settings, _ in self.found))

    @property
    def kinds(self) -> list[str]:
        """The kinds of candidates of any defence, in the order of `KINDS`."""
        return [kind for kind in KINDS if any(kind == measured for _, _, measured in self.found)]

    @property
    def attackers(self) -> list[str]:
        """Those who chose, in the order measured."""
        return list(dict.fromkeys(name for scores in self.found.values() for name in scores))

    def by(self, defence: str, settings: Any, kind: str) -> Mapping[str, Score]:
        """Return the score of each attacker; empty where none was tried.

        Parameters
        ----------
        settings : mapping, or sequence of pairs
            Of the defence, in any order.
        """
        asked = dict(settings)
        return next(
            (scores for (name, own, of), scores in self.found.items()
             if (name, of) == (defence, kind) and dict(own) == asked),
            {},
        )  # fmt: skip

    def strongest(self, defence: str, settings: Any, kind: str) -> tuple[str, Score] | None:
        """Return the attacker whose interval ends highest, and its score; None if none was tried.

        The greater value decides between equal ends.
        """
        scores = self.by(defence, settings, kind)
        return max(scores.items(), key=upper_end) if scores else None

    def score(self, defence: str, settings: Any, kind: str) -> Score | None:
        """Return what the strongest attacker finds, in per cent; None where it was not measured."""
        found = self.strongest(defence, settings, kind)
        return None if found is None else found[1]


def listed_told(found: Listed, defence: str, settings: Any, *, is_brief: bool = False) -> str:
    """Return what is found from a list behind a defence, and without one; empty if not measured.

    In one sentence where `is_brief`, without the intervals of no defence.

    Examples
    --------
    >>> from core.results import Interval
    >>> scores = {"linear": Score(79.1, Interval(74.2, 83.4), 300, 2.5)}
    >>> listed_told(Listed("minilm", 40, {("int8", (), "name"): scores}), "int8", {})
    'From a list of 40, an attacker still finds 79 [74, 83] % of names (guessing: 2.5 %; n = 300 \
under one seed; invented ones; a lower bound).'
    """
    told = _told_of(found, defence, settings)
    if not told:
        return ""
    shares = shares_said(found, defence, settings)
    without = [found.score(_BASE, (), kind) for kind in told]
    finds = "finds" if defence == _BASE else "still finds"
    one = next(iter(told.values()))
    seeds = " under one seed" if one.n_seeds == 1 else f" under {one.n_seeds} seeds"
    beside = ""
    rests = f"n = {one.n:,}{seeds}; invented ones; a lower bound"
    if is_brief:
        own = in_a_row([f"{score.value:.0f}" for score in without if score is not None])
        beside = f"; without a defence {own} %" if None not in without else ""
        return (
            f"From a list of {found.n_candidates}, an attacker {finds} {shares} ({rests}; guessing "
            f"{one.chance:.1f} %{beside})."
        )
    if defence != _BASE and None not in without:
        own = in_a_row([score.said(0) for score in without if score is not None])
        beside = f" Without a defence: {own} %."
    return (
        f"From a list of {found.n_candidates}, an attacker {finds} {shares} (guessing: "
        f"{one.chance:.1f} %; {rests}).{beside}"
    )


def shares_said(found: Listed, defence: str, settings: Any) -> str:
    """Return the share of each kind that is found behind a defence; empty if not measured."""
    told = _told_of(found, defence, settings)
    shares = [f"{score.said(0)} % of {KINDS[kind]}" for kind, score in told.items()]
    return in_a_row(shares) if shares else ""


def _told_of(found: Listed, defence: str, settings: Any) -> dict[str, Score]:
    scores = {kind: found.score(defence, settings, kind) for kind in found.kinds}
    return {kind: score for kind, score in scores.items() if score is not None}


def undefended_said(encoder: str = "minilm") -> str:
    """Return what is found from a list without a defence, where it ships; empty elsewhere."""
    try:
        found = shipped_listed(encoder)
    except ArtifactError:
        return ""
    return "" if found is None else listed_told(found, _BASE, {})


def shipped_listed(encoder: str) -> Listed | None:
    """Read what ships for an encoder; None where nothing was measured for it.

    Raises
    ------
    ArtifactError
        Damaged, or of another study; the message names the file.
    """
    path = SHIPPED / f"{encoder}.json"
    return load_listed(path) if path.parent == SHIPPED and path.exists() else None


def load_listed(path: Path) -> Listed:
    """Read what `python -m core study listed` wrote; cells that failed are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = [row for row in read_rows(path, "listed") if not row.error]
    try:
        return summarise(rows)
    except (AttributeError, InvalidInputError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not hold rows of `python -m core study listed`. Run it again."
        ) from error


def summarise(rows: Sequence[Row]) -> Listed:
    """Return what each attacker finds, averaged over the seeds of a defence and kind.

    Raises
    ------
    InvalidInputError
        There are no rows, they are of several encoders or lists, a seed counts twice, or a row
        tells no score.
    """
    measured: dict[_Place, list[Row]] = {}
    for row in rows:
        if row["kind"] not in KINDS:
            raise InvalidInputError(f"{row['kind']!r} is no kind of candidate.")
        place = (str(row["defence"]), tuple(row["defence_settings"].items()), str(row["kind"]))
        measured.setdefault(place, []).append(row)
    shared = {(str(row["encoder"]), int(row["n_candidates"])) for row in rows}
    if len(shared) != 1:
        raise InvalidInputError("Rows must be of one encoder and lists of one size.")
    ((encoder, n_candidates),) = shared
    found = {place: _means(own) for place, own in measured.items()}
    told = tuple(row.provenance for row in rows if row.provenance is not None)
    return Listed(encoder, n_candidates, found, told)


def _means(rows: Sequence[Row]) -> dict[str, Score]:
    """Return the score of each attacker over the seeds of a defence and kind."""
    if len({row["seed"] for row in rows}) < len(rows):
        raise InvalidInputError("A seed was measured twice.")
    measures = dict.fromkeys(m for row in rows for m in row.scores if m.startswith(f"{_MEASURE}: "))
    if not measures:
        raise InvalidInputError("A row tells no score.")
    # All seeds draw their targets from the same documents: more seeds tell no more of these.
    is_same = any(row["unit"] == "document" for row in rows)
    return {
        measure.partition(": ")[2]: mean_row_score(rows, measure, is_same_sample=is_same)
        for measure in measures
    }


def markdown(rows: Sequence[Row]) -> str:
    """Return what the strongest attacker finds behind each defence, and what each one finds."""
    head = "# Which candidate of a list is in a text\n\n"
    measured = [row for row in rows if not row.error]
    failed = [
        [row["defence"], strength(row["defence"], row["defence_settings"]),
         f"{row['kind']}, seed {row['seed']} failed: {row.error}"]
        for row in failures(rows)
    ]  # fmt: skip
    if not measured:
        return head + "\n".join(markdown_table(["defence", "strength", ""], failed)) + "\n"
    found = summarise(measured)
    names = {of: [defence, strength(defence, dict(settings))]
             for of in found.defences for defence, settings in [of]}  # fmt: skip
    columns = ["defence", "strength", *(f"{KINDS[kind]}, %" for kind in found.kinds)]
    lines = [[*names[of], *(_said(found.score(*of, kind)) for kind in found.kinds)] for of in names]
    pairs = [(kind, attacker) for kind in found.kinds for attacker in found.attackers]
    each = ["defence", "strength", *(f"{KINDS[kind]}, {attacker}" for kind, attacker in pairs)]
    by_attacker = [
        [*names[of], *(_said(found.by(*of, kind).get(attacker)) for kind, attacker in pairs)]
        for of in names
    ]
    parts = [
        head + _head(measured, found),
        "\n".join(markdown_table(columns, [*lines, *failed])),
        "What each attacker finds, in per cent:",
        "\n".join(markdown_table(each, by_attacker)),
    ]
    return "\n\n".join(parts) + "\n"


def _head(rows: Sequence[Row], found: Listed) -> str:
    first = rows[0]
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    titles = ", ".join(ATTRIBUTE_ATTACKS[name].title.lower() for name in found.attackers)
    told = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"one seed ({seeds[0]})"
    unit = "documents" if first["unit"] == "document" else "distinct texts"
    return (
        f"The attacker holds a list of {found.n_candidates} candidates and chooses which one is in "
        f"a text, by the vector that a defence releases. Guessing finds "
        f"{100 / found.n_candidates:.1f} %. The encoder is {found.encoder}; {first['n_targets']} "
        f"targets a seed, {told}. Each attacker ({titles}) knows the defence and learns from "
        f"{first['n_vectors']:,} defended vectors of its own {first['n_auxiliary']:,} texts. A "
        "cell holds the share of targets whose candidate is ranked first, with its 95 % interval "
        f"over {unit}, by the attacker whose interval ends highest. Names, telephone numbers and "
        "IBANs are made up; all telephone numbers have one prefix, all IBANs one bank. Every share "
        "is a lower bound: an attacker with more texts, or another classifier, may find more."
    )


def _said(score: Score | None) -> str:
    return "" if score is None else score.said()
