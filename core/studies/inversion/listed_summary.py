"""Summary of the list study: what an attacker with a candidate list finds behind each defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.attacks.attributes.registry import ATTRIBUTE_ATTACKS
from leakscope.core.defences.setting import strength
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.formatting import join_words
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table, read_rows
from leakscope.core.studies.inversion.listed_texts import KINDS
from leakscope.core.studies.tradeoff.summary import upper_end

SHIPPED = RESULTS / "listed.json"
"""The shipped rows of the bundled encoder."""

_MEASURE = "hits_1"
_BASE = "none"
"""The baseline of all defences."""

_Place = tuple[str, tuple[tuple[str, Any], ...], str]


def listed_measure(attacker: str) -> str:
    """Return the name of an attacker's measure in rows, such as `hits_1: linear`."""
    return f"{_MEASURE}: {attacker}"


@dataclass(frozen=True)
class Listed:
    """The list study of one encoder: each attacker's score per defence and kind, over seeds.

    Attributes
    ----------
    n_candidates : int
        On each list.
    found : dict
        Defence, settings and kind of candidate to the score of each attacker.
    provenances : tuple of Provenance
        The known provenances of the rows.
    """

    encoder: str
    n_candidates: int
    found: Mapping[_Place, Mapping[str, Score]]
    provenances: tuple[Provenance, ...] = field(default=(), compare=False)

    @property
    def defences(self) -> list[tuple[str, tuple[tuple[str, Any], ...]]]:
        """Each defence with its settings, in measured order."""
        return list(dict.fromkeys((defence, settings) for defence, settings, _ in self.found))

    @property
    def kinds(self) -> list[str]:
        """The measured kinds of candidates, in the order of `KINDS`."""
        return [kind for kind in KINDS if any(kind == measured for _, _, measured in self.found)]

    @property
    def attackers(self) -> list[str]:
        """The attackers, in measured order."""
        return list(dict.fromkeys(name for scores in self.found.values() for name in scores))

    def by(self, defence: str, settings: Any, kind: str) -> Mapping[str, Score]:
        """Return each attacker's score on a kind behind a defence; empty if none was tried.

        Parameters
        ----------
        settings : mapping, or sequence of pairs
            Of the defence, in any order.
        """
        asked = (defence, dict(settings), kind)
        found = (s for (name, own, of), s in self.found.items() if (name, dict(own), of) == asked)
        return next(found, {})

    def strongest(self, defence: str, settings: Any, kind: str) -> tuple[str, Score] | None:
        """Return the attacker whose interval ends highest, and its score; None if none was tried.

        Ties are broken by the value.
        """
        scores = self.by(defence, settings, kind)
        return max(scores.items(), key=upper_end) if scores else None

    def score(self, defence: str, settings: Any, kind: str) -> Score | None:
        """Return the strongest attacker's score behind a defence, in %; None if not measured."""
        found = self.strongest(defence, settings, kind)
        return None if found is None else found[1]


def describe_listed_leak(
    found: Listed, defence: str, settings: Any, *, is_brief: bool = False
) -> str:
    """Describe what an attacker with a list finds with and without a defence; "" if unmeasured.

    `is_brief` describes only the first kind of candidate, without intervals.

    Examples
    --------
    >>> from leakscope.core.results import Interval
    >>> scores = {"linear": Score(79.1, Interval(74.2, 83.4), 300, 2.5)}
    >>> describe_listed_leak(Listed("minilm", 40, {("int8", (), "name"): scores}), "int8", {})
    'With a list of 40 candidates, an attacker still finds 79 % of names (95 % CI 74–83); guessing \
finds 2.5 %. This was measured with invented candidates (n = 300 tests, one random seed). A better \
attacker may find more.'
    """
    scores = _scores_by_kind(found, defence, settings)
    if not scores:
        return ""
    without = [found.score(_BASE, (), kind) for kind in scores]
    if is_brief:
        (kind, own), none = next(iter(scores.items())), without[0]
        beside = "" if none is None else f" ({none.value:.0f} % without a defence)"
        return (
            f"With a list of {found.n_candidates} candidates, {own.value:.0f} % of {KINDS[kind]} "
            f"are still found{beside}."
        )
    shares = describe_shares(found, defence, settings)
    finds = "finds" if defence == _BASE else "still finds"
    one = next(iter(scores.values()))
    seeds = "one random seed" if one.n_seeds == 1 else f"{one.n_seeds} random seeds"
    beside = ""
    if defence != _BASE and None not in without:
        beside = f" Without a defence, it finds {describe_shares(found, _BASE, {})}."
    return (
        f"With a list of {found.n_candidates} candidates, an attacker {finds} {shares}; guessing "
        f"finds {one.chance:.1f} %.{beside} This was measured with invented candidates "
        f"(n = {one.n:,} tests, {seeds}). A better attacker may find more."
    )


def _format_share(score: Score, of: str) -> str:
    """Format a share in per cent with its interval."""
    value, interval = score.parts(0)
    return f"{value} %{of} (95 % CI {interval})"


def describe_shares(found: Listed, defence: str, settings: Any) -> str:
    """Describe the share found of each kind of candidate behind a defence; "" if not measured."""
    scores = _scores_by_kind(found, defence, settings)
    shares = [_format_share(score, f" of {KINDS[kind]}") for kind, score in scores.items()]
    return join_words(shares) if shares else ""


def _scores_by_kind(found: Listed, defence: str, settings: Any) -> dict[str, Score]:
    """Return the strongest attacker's score of each measured kind behind a defence."""
    scores = {kind: found.score(defence, settings, kind) for kind in found.kinds}
    return {kind: score for kind, score in scores.items() if score is not None}


def describe_undefended(encoder: str = "minilm") -> str:
    """Describe what an attacker with a list finds without a defence; "" if not shipped."""
    try:
        found = shipped_listed(encoder)
    except ArtifactError:
        return ""
    return "" if found is None else describe_listed_leak(found, _BASE, {})


def shipped_listed(encoder: str) -> Listed | None:
    """Read the shipped list study of an encoder, averaged over seeds; None if there is none.

    Raises
    ------
    ArtifactError
        Damaged, or of another study; the message names the file.
    """
    return load_listed(SHIPPED) if encoder == "minilm" and SHIPPED.exists() else None


def load_listed(path: Path) -> Listed:
    """Read rows of `leakscope study listed` from a file and average them; failures are left out.

    Raises
    ------
    ArtifactError
        Missing, damaged, or of another study; the message names the file.
    """
    rows = read_rows(path, "listed").measured
    try:
        return summarise(rows)
    except (AttributeError, InvalidInputError, LookupError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not contain rows of `leakscope study listed`. Run it again."
        ) from error


def summarise(rows: Sequence[Row]) -> Listed:
    """Average rows of one encoder over seeds, by defence, kind and attacker, to a `Listed`.

    Raises
    ------
    InvalidInputError
        There are no rows, they have several encoders or lists, a seed counts twice, or a row
        has no score.
    """
    table = ResultTable(rows)
    for kind in table.distinct("kind"):
        if kind not in KINDS:
            raise InvalidInputError(f"{kind!r} is not a kind of candidate.")
    shared = list(table.group_by("encoder", "n_candidates"))
    if len(shared) != 1:
        raise InvalidInputError(
            "All rows must have the same encoder and the same number of candidates."
        )
    ((encoder, n_candidates),) = shared
    places = table.group_by("defence", lambda row: tuple(row["defence_settings"].items()), "kind")
    found = {
        (defence, settings, kind): _mean_by_attacker(own)
        for (defence, settings, kind), own in places.items()
    }
    told = tuple(each for each in table.provenances if each is not None)
    return Listed(str(encoder), int(n_candidates), found, told)


def _mean_by_attacker(rows: ResultTable) -> dict[str, Score]:
    """Average the rows of one setting and kind over seeds; return each attacker's mean score."""
    if len(rows.distinct("seed")) < len(rows):
        raise InvalidInputError("A seed occurs twice.")
    measures = dict.fromkeys(m for row in rows for m in row.scores if m.startswith(f"{_MEASURE}: "))
    if not measures:
        raise InvalidInputError("A row has no score.")
    # All seeds draw targets from the same documents: more seeds do not narrow the interval.
    is_same = "document" in rows.column("unit")
    return {
        measure.partition(": ")[2]: rows.mean(measure, is_same_sample=is_same)
        for measure in measures
    }


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: the strongest attacker per defence, then each one."""
    head = "# Which candidate of a list is in a text\n\n"
    table = ResultTable(rows)
    measured = table.measured
    failed = []
    for row in table.failed:
        said = f"{row['kind']}, seed {row['seed']} failed: {row.error}"
        failed.append([row["defence"], strength(row["defence"], row["defence_settings"]), said])
    if not measured:
        return head + "\n".join(markdown_table(["defence", "strength", ""], failed)) + "\n"
    found = summarise(measured)
    names = {of: [of[0], strength(of[0], dict(of[1]))] for of in found.defences}
    columns = ["defence", "strength", *(f"{KINDS[kind]}, %" for kind in found.kinds)]
    lines = [
        [*names[of], *(_format_score(found.score(*of, kind)) for kind in found.kinds)]
        for of in names
    ]
    pairs = [(kind, attacker) for kind in found.kinds for attacker in found.attackers]
    each = ["defence", "strength", *(f"{KINDS[kind]}, {attacker}" for kind, attacker in pairs)]
    by_attacker = [
        [
            *names[of],
            *(_format_score(found.by(*of, kind).get(attacker)) for kind, attacker in pairs),
        ]
        for of in names
    ]
    parts = [
        head + _introduction(measured, found),
        "\n".join(markdown_table(columns, [*lines, *failed])),
        "Per attacker, in per cent:",
        "\n".join(markdown_table(each, by_attacker)),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(rows: ResultTable, found: Listed) -> str:
    """Format the paragraph above the tables: encoder, list size, targets, seeds and attackers."""
    first = rows[0]
    seeds = rows.distinct("seed")
    titles = ", ".join(ATTRIBUTE_ATTACKS[name].title.lower() for name in found.attackers)
    told = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"one seed ({seeds[0]})"
    unit = "documents" if first["unit"] == "document" else "distinct texts"
    return (
        f"The attacker has a list of {found.n_candidates} candidates and infers from the defended "
        f"vector which one is in the text. Guessing finds {100 / found.n_candidates:.1f} %. The "
        f"encoder is {found.encoder}; there are {first['n_targets']} targets per seed, {told}. "
        f"Each attacker ({titles}) knows the defence and trains on {first['n_vectors']:,} defended "
        f"vectors of its {first['n_auxiliary']:,} texts. Each cell gives the share of targets "
        f"whose candidate ranks first, with its 95 % CI over {unit}, for the attacker whose "
        "interval ends highest. Names, telephone numbers and IBANs are invented; all telephone "
        "numbers have the same prefix, all IBANs the same bank. Every share is a lower bound: an "
        "attacker with more texts, or another classifier, may find more."
    )


def _format_score(score: Score | None) -> str:
    """Format a score with its interval; "" if there is none."""
    return "" if score is None else score.format()
