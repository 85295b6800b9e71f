"""Points of the trade-off, one per defence and strength, and the rows that they average."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.defences.registry import DEFENCES, guarantee_of
from leakscope.core.defences.setting import entry_shown, input_mechanism, strength
from leakscope.core.defences.trained.registry import is_of_model, is_of_network
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import read_rows, rows_from_json
from leakscope.core.specs import DefenceSpec
from leakscope.core.storage.artifacts import read_json
from leakscope.core.studies.deniability.odds import releases_of
from leakscope.core.tasks.names import USES, use_of

READS: Mapping[str, str] = {
    "words": "words recovered, F1",
    "attribute": "attribute inferred, %",
    "membership": "membership inferred, AUC",
}
"""The attackers' targets, each with its measure."""


ATTACKERS_SINCE = 3
"""The study version since which trained attackers are unchanged."""

POSTERIOR = "posterior"
OF_TOKENS = ("tokens", POSTERIOR)
"""Attackers on released tokens instead of a text's vector."""
ROUNDING_GRID = "grid"
"""The attacker that is added to `posterior` on noisy token vectors."""
FRESH = ("retrieval", "probe_mlc")
"""Additional attackers on trained defences: both see only protected vectors, and no defence's
adversary is of the family of the first."""


@dataclass(frozen=True)
class Point:
    """The utility, leakage and cost of one defence at one strength.

    Attributes
    ----------
    utility : dict
        Task to score.
    leaks : dict
        Attacker to token-set F1; each knows the defence.
    token_inversion : Score or None
        Share of tokens that remain unchanged, if tokens are perturbed.
    change : dict
        Task to the paired difference from no defence; empty in results of earlier versions.
    provenances : tuple of Provenance
        The known provenances of the cells that it averages.
    attribute : dict
        Attacker to its top-1 accuracy on the attribute in per cent; empty if not attacked.
    membership : dict
        Attack to 100 × AUC of membership inference; empty if not attacked.
    as_without : frozenset of str
        Tasks that were not measured because the defence leaves their vectors unchanged.
    training_minutes : float or None
        Time of training the defence; 0 if nothing is trained, None if not timed.
    milliseconds : float or None
        Time per text of encoder and defence; None if not timed.
    milliseconds_alone : float or None
        Time per text of the encoder alone, timed in alternation; None if not timed so.
    all_words : dict
        Attacker to the F1 if words outside every vocabulary count as missed; empty in results of
        earlier versions.
    runs : dict
        `words`, `attribute` or `membership`, to attacker, to the scores of each seed.
    same_sample : frozenset of str
        The targets that every seed measured on the same texts or documents.
    """

    defence: str
    settings: tuple[tuple[str, Any], ...]
    utility: dict[str, Score]
    leaks: dict[str, Score]
    token_inversion: Score | None
    change: dict[str, Score] = field(default_factory=dict)
    provenances: tuple[Provenance, ...] = ()
    attribute: dict[str, Score] = field(default_factory=dict)
    membership: dict[str, Score] = field(default_factory=dict)
    as_without: frozenset[str] = frozenset()
    training_minutes: float | None = None
    milliseconds: float | None = None
    milliseconds_alone: float | None = None
    all_words: dict[str, Score] = field(default_factory=dict)
    releases: int = 1
    """Of the same text: several if a network was trained on a fresh copy in every epoch."""
    runs: Mapping[str, Mapping[str, tuple[Score, ...]]] = field(default_factory=dict)
    same_sample: frozenset[str] = frozenset()

    def read_by(self, what: str) -> dict[str, Score]:
        """Return each attacker's score on a target: `words`, `attribute` or `membership`."""
        found: dict[str, Score] = self.leaks if what == "words" else getattr(self, what)
        return found

    def strongest(self, what: str) -> tuple[str, Score] | None:
        """Return the attacker whose interval ends highest, and its score; None if none was tried.

        By the upper end of the interval: the bound of a setting is then the bound of its strongest
        attacker, whichever that is. The greater value decides between equal ends.
        """
        found = self.read_by(what)
        return max(found.items(), key=upper_end) if found else None

    @property
    def attacker(self) -> str:
        """The attacker on words whose interval of F1 ends highest."""
        return max(self.leaks.items(), key=upper_end)[0]

    @property
    def leakage(self) -> Score:
        """The F1 on words of the attacker that is strongest on words."""
        return self.leaks[self.attacker]

    @property
    def leakage_of_all_words(self) -> Score | None:
        """The strongest attacker's F1 if words outside its vocabulary count as missed, or None."""
        return self.all_words.get(self.attacker)

    @property
    def leaves_vectors(self) -> bool:
        """Whether the defence leaves vectors unchanged, so that they leak as without it."""
        return entry_shown(self.defence).acts_on == "model"

    @property
    def spec(self) -> DefenceSpec:
        """The defence with its settings."""
        return DefenceSpec.of(self.defence, dict(self.settings))

    @property
    def kind(self) -> str:
        """The settings other than the strength, such as `against words`; "" without any.

        One line of a figure shows one kind.
        """
        known = entry_shown(self.defence).strengths
        return strength(self.defence, {k: v for k, v in self.settings if k not in known})

    @property
    def label(self) -> str:
        """The strength in words, such as `η 75`."""
        return strength(self.defence, dict(self.settings))


def upper_end(item: tuple[str, Score]) -> tuple[float, float]:
    """Return the sort key of an (attacker, score) pair: upper interval end, then value."""
    score = item[1]
    return (score.ci95.high if score.has_interval else score.value), score.value


def promises(point: Point, reads: str = "words") -> bool:
    """Return whether a setting has a privacy guarantee against one of the attackers' targets.

    A defence of training texts guarantees nothing about vectors, and a defence of vectors or texts
    nothing about membership.
    """
    entry = entry_shown(point.defence)
    if (entry.acts_on == "model") != (reads == "membership"):
        return False
    spec = DefenceSpec.of(point.defence, dict(point.settings))
    return bool(entry.guarantee and guarantee_of(spec))


_UNTIMED = "not timed"


def describe_minutes(point: Point) -> str:
    """Describe how long a defence was trained."""
    minutes = point.training_minutes
    if minutes is None:
        return _UNTIMED
    return _format_time(minutes, "min") if minutes else "no training"


def describe_milliseconds(point: Point) -> str:
    """Describe the time per text of encoder and defence."""
    return _UNTIMED if point.milliseconds is None else _format_time(point.milliseconds, "ms")


def _format_time(value: float, unit: str) -> str:
    """Format a time with its unit, with two significant digits below 10."""
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


SHIPPED = RESULTS

_MALFORMED = (KeyError, TypeError, AttributeError, ValueError, IndexError)

LEAKAGE = "token_set_f1"
"""The measure of an attacker's F1; `leakage_measure` adds the attacker."""
ATTRIBUTE = "attribute_top1"
"""The measure of the per cent of targets whose attribute an attacker ranks first."""
MEMBERSHIP = "membership_auc"
"""The measure of 100 × AUC of a membership attack."""
TOKEN_INVERSION = "token_inversion"
"""The measure of the share of tokens that stay unchanged."""
ALL_WORDS = "all_words_f1"
"""The measure of F1 if words outside every vocabulary count as missed."""

FACTS = (
    "study",
    "n_train",
    "n_test",
    "n_searched",
    "n_auxiliary",
    "n_targets",
    "encoder",
    "attack",
    "settings",
    "auxiliary",
    "start",
    "encoder_precision",
    "encoder_backend",
    "machine",
    "attributes",
    "attribute",
    "n_labels",
    "n_attribute_known",
    "n_attribute_targets",
    "task",
    "task_near",
    "n_attacked",
    "n_shadows",
    "n_timed",
    "label_searches",
)
"""Facts shared by all rows, by all rows of attacks, or by all rows of utility."""

_READ = (LEAKAGE, ATTRIBUTE, MEMBERSHIP, ALL_WORDS)
"""Measures of attackers; all others are of utility."""
_READS_OF = {LEAKAGE: "words", ATTRIBUTE: "attribute", MEMBERSHIP: "membership"}
"""Each measure of an attacker, with its target."""
_OF_VECTORS = ("attack", "attribute")
"""The parts that attack vectors."""
_OPTIONAL = {"attribute", "membership", "time"}  # those that a point may be without

_Place = tuple[str, tuple[tuple[str, Any], ...]]


def utility_measure(task: str, measure: str) -> str:
    """Return the name of a task's measure in rows, such as `accuracy: TREC`."""
    return f"{measure}: {task}"


def leakage_measure(attacker: str, measure: str = LEAKAGE) -> str:
    """Return the name of an attacker's F1 in rows, such as `token_set_f1: tuned`."""
    return f"{measure}: {attacker}"


def change_measure(task: str, measure: str) -> str:
    """Return the name, in rows, of a task's change from no defence."""
    return f"{_CHANGE}{measure}: {task}"


_CHANGE = "change of "


@dataclass(frozen=True)
class Tradeoff:
    """All points of a trade-off study, with its facts.

    Attributes
    ----------
    measures : dict
        Task to what is measured of it, such as `accuracy`.
    """

    points: tuple[Point, ...]
    facts: dict[str, Any]
    measures: dict[str, str] = field(default_factory=dict)

    @property
    def tasks(self) -> list[str]:
        """The tasks in measured order."""
        return list(self.points[0].utility)

    @property
    def uses(self) -> list[str]:
        """The uses of the tasks: keys of `leakscope.core.tasks.names.USES`."""
        found = {use_of(self.measures.get(task, "")) for task in self.tasks}
        return [use for use in USES if use in found]

    def tasks_of(self, use: str) -> list[str]:
        """Return the tasks of a use in measured order."""
        return [task for task in self.tasks if use_of(self.measures.get(task, "")) == use]

    def default_task(self, use: str) -> str:
        """Return the task of a use that was measured at the most settings."""
        return max(self.tasks_of(use), key=lambda t: sum(t in p.utility for p in self.points))

    @property
    def attackers(self) -> list[str]:
        """The attackers on words of any point."""
        return list(dict.fromkeys(name for point in self.points for name in point.leaks))

    @property
    def provenances(self) -> list[Provenance]:
        """The provenances of all points."""
        return [each for point in self.points for each in point.provenances]

    @property
    def undefended(self) -> Point:
        """The point without any defence."""
        baselines = {name for name, entry in DEFENCES.items() if entry.is_baseline}
        return next(point for point in self.points if point.defence in baselines)


def kept_usefulness(point: Point, undefended: Point) -> dict[str, float]:
    """Return, by task, the share of undefended utility above guessing that a point keeps."""
    base = undefended.utility
    return {
        task: (score.value - base[task].chance) / (base[task].value - base[task].chance)
        for task, score in point.utility.items()
        if base[task].value > base[task].chance
    }


def measured_etas(found: Tradeoff, mechanism: str) -> dict[float, Point]:
    """Return the points of a mechanism by η, in ascending order, as a dict."""
    points = {
        float(dict(point.settings)["eta"]): point
        for point in found.points
        if point.defence == mechanism and "eta" in dict(point.settings)
    }
    return dict(sorted(points.items()))


def load_tradeoff(path: Path) -> Tradeoff:
    """Read the results of `leakscope study tradeoff` from a file, averaged over seeds.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    return parse_tradeoff(read_json(path), str(path))


def parse_tradeoff(data: Any, name: str) -> Tradeoff:
    """Parse a trade-off from a file's JSON object, averaged over seeds; raise if it is not one.

    Raises
    ------
    ArtifactError
        It is no trade-off; the message names the file.
    """
    try:
        return _summarise_complete(rows_from_json(data))
    except (*_MALFORMED, InvalidInputError, StopIteration) as error:
        raise _not_a_tradeoff(name) from error


def shipped_tables() -> list[Path]:
    """Return the paths of the bundled encoder's trade-off files; the first has the most tasks.

    The first is of all strengths of what needs no training, the second of every kind of defence at
    one or two strengths, the third only the utility for support messages.
    """
    first, *more = (SHIPPED / f"tradeoff{kind}.json" for kind in ("", "-all", "-banking"))
    return [first, *filter(Path.exists, more)]


def shipped_tradeoff() -> Tradeoff:
    """Read the shipped trade-off files as one trade-off.

    Equal rows count once. If two files measured the same in different cells, such as utility for
    three tasks and for eight, the first file counts.

    Raises
    ------
    ArtifactError
        Missing, damaged, or not a trade-off; the message names the file.
    """
    return _read_tables(
        tuple((p, p.stat().st_mtime_ns if p.exists() else None) for p in shipped_tables())
    )


@lru_cache(maxsize=2)
def _read_tables(tables: tuple[tuple[Path, int | None], ...]) -> Tradeoff:
    """Read tables as one trade-off; they are read again once the state of a file changes."""
    rows: list[Row] = []
    for path, _ in tables:
        own = read_rows(path, "tradeoff")
        rows += [row for row in own if row not in rows]
    try:
        return _summarise_complete(rows)
    except (*_MALFORMED, InvalidInputError, StopIteration) as error:
        raise _not_a_tradeoff(" and ".join(str(path) for path, _ in tables)) from error


def _summarise_complete(rows: Sequence[Row]) -> Tradeoff:
    """Summarise rows; raise unless every point has a score of an attacker on words."""
    found = summarise(rows)
    _ = found.undefended, found.tasks
    if not all(point.leaks for point in found.points):
        raise InvalidInputError("No row has an attacker's score on words.")
    return found


def _not_a_tradeoff(name: str) -> ArtifactError:
    """Build the error for a file that is not a result of the study."""
    return ArtifactError(
        f"{name} is not a result of `leakscope study tradeoff`. Run the study again."
    )


def summarise(rows: Sequence[Row]) -> Tradeoff:
    """Average rows over seeds to a point per defence and strength; incomplete ones are left out.

    A setting without utility or word attacks is left out, as is one that releases tokens without
    the `posterior` attack if others have it. A defence that leaves vectors unchanged gets the
    attacks on undefended vectors; a network gets those on the defence whose release it reads.
    """
    measured: dict[_Place, list[Row]] = {}
    for row in rows:
        if not row.error:
            place = (row["defence"], tuple(row["defence_settings"].items()))
            measured.setdefault(place, []).append(row)
    needed = {row.get("part") for row in rows} - _OPTIONAL
    joined = _with_shared_attacks(measured)
    is_tried = any(_is_of_posterior(row) for row in rows)
    whole = {
        place: own
        for place, own in joined.items()
        if needed <= {r.get("part") for r in own}
        and (
            not is_tried
            or any(map(_is_of_posterior, own))
            or not entry_shown(place[0]).releases_tokens
        )
    }
    points = tuple(_make_point(*place, rows=own) for place, own in whole.items())
    facts = {name: row[name] for row in reversed(rows) for name in FACTS if name in row}
    facts = {name: facts[name] for name in FACTS if name in facts}
    facts["seeds"] = list(dict.fromkeys(row["seed"] for row in rows))
    facts["seconds"] = sum(row.seconds or 0.0 for row in rows)
    facts["version"] = attack_version(rows, points)
    if subsets := _subsets(rows, facts):
        facts["subsets"] = subsets
    named = dict.fromkeys(measure for row in rows for measure in row.scores)
    split = [measure.partition(": ") for measure in named]
    measures = {t: m for m, colon, t in split if colon and m not in _READ and _CHANGE not in m}
    return Tradeoff(points, facts, measures)


def attack_version(rows: Sequence[Row], points: Iterable[Point]) -> int:
    """Return the lowest study version among points whose strongest attacker is trained.

    Later versions changed how classifiers are trained, not the attackers on released tokens. Rows
    without a version are of the first.
    """
    read = {(p.defence, p.settings) for p in points if p.leaks and p.attacker not in OF_TOKENS}
    versions = [
        (row.get("versions") or {}).get("study", 1)
        for row in rows
        if row.get("part", "attack") == "attack"
        and (row["defence"], tuple(row["defence_settings"].items())) in read
    ]
    return min(versions, default=1)


def _subsets(rows: Sequence[Row], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks measured on other numbers of texts than usual, with sizes and precision.

    Each entry holds `tasks`, `n_train`, `n_test` and `precision`, that of the encoder.
    """
    usual = (facts.get("n_train"), facts.get("n_test"))
    found: dict[tuple[int, int, str], dict[str, None]] = {}
    for row in rows:
        sizes = (row.get("n_train", 0), row.get("n_test", 0))
        if row.get("part") == "use" and sizes != usual and all(sizes):
            tasks = (measure.partition(": ")[2] for measure in row.scores)
            place = (*sizes, str(row.get("encoder_precision", "")))
            found.setdefault(place, {}).update(dict.fromkeys(tasks))
    return [
        {"tasks": list(names), "n_train": n_train, "n_test": n_test, "precision": precision}
        for (n_train, n_test, precision), names in found.items()
    ]


def _is_of_posterior(row: Row) -> bool:
    """Return whether a row, even a failed one, is of the `posterior` attack."""
    return POSTERIOR in row.get("attackers", ()) and row.get("part", "attack") == "attack"


def _with_shared_attacks(measured: Mapping[_Place, list[Row]]) -> dict[_Place, list[Row]]:
    """Return rows by setting; a defence that releases nothing itself borrows attack rows.

    These are rows without a defence, or behind the mechanism of a network's users. The time per
    text is shared too, except for a network of another kind than the encoder.
    """
    bases = {name for name, entry in DEFENCES.items() if entry.is_baseline}
    plain = next((own for (name, _), own in measured.items() if name in bases), [])
    lent: dict[_Place, list[Row]] = {}
    for name, settings in measured:
        parts = {*_OF_VECTORS, "time"}
        if is_of_model(name):
            lenders = plain
        elif is_of_network(name):
            sent = input_mechanism(dict(settings))
            lenders = measured.get((sent.name, sent.settings), [])
            if dict(settings).get("network") != "transformer":
                parts.remove("time")
        else:
            continue
        lent[name, settings] = [row for row in lenders if row.get("part") in parts]
    return {place: [*own, *lent.get(place, ())] for place, own in measured.items()}


def _make_point(
    defence: str, settings: tuple[tuple[str, Any], ...], *, rows: Sequence[Row]
) -> Point:
    """Average the rows of one setting over seeds to a point."""
    measures = dict.fromkeys(measure for row in rows for measure in row.scores)
    same = {task for row in rows for task in row.facts.get("same_texts", ())}
    # All seeds draw targets from the same documents: more seeds do not narrow the interval.
    if any(row.facts.get("unit") == "document" for row in rows):
        same.update((LEAKAGE, ALL_WORDS))
    if any(row.facts.get("n_groups") for row in rows):
        same.add(ATTRIBUTE)
    same.add(MEMBERSHIP)  # all seeds split the texts of one task
    means = {
        m: ResultTable(one).mean(m, is_same_sample=not same.isdisjoint(m.split(": ")))
        for m in measures
        for one in [_first_per_seed(rows, m)]
    }
    utility: dict[str, Score] = {}
    change: dict[str, Score] = {}
    read: dict[str, dict[str, Score]] = {what: {} for what in _READ}
    runs: dict[str, dict[str, tuple[Score, ...]]] = {what: {} for what in _READS_OF.values()}
    for measure, score in means.items():
        head, colon, name = measure.partition(": ")
        if head in read:
            name = name or str(rows[0].get("attack", "probe_mlc"))
            read[head][name] = score
            if head in _READS_OF:
                each = _first_per_seed(rows, measure)
                runs[_READS_OF[head]][name] = tuple(row.scores[measure] for row in each)
        elif colon:
            (change if head.startswith(_CHANGE) else utility)[name] = score
    return Point(
        defence,
        settings,
        utility,
        read[LEAKAGE],
        means.get(TOKEN_INVERSION),
        change,
        tuple(row.provenance for row in rows if row.provenance is not None),
        attribute=read[ATTRIBUTE],
        membership=read[MEMBERSHIP],
        all_words=read[ALL_WORDS],
        as_without=frozenset(task for row in rows for task in row.facts.get("as_without", ())),
        training_minutes=_mean_fact(rows, "training_minutes"),
        milliseconds=_mean_fact(
            [row for row in rows if row.get("part") == "time"] or rows, "milliseconds_a_text"
        ),
        milliseconds_alone=_mean_fact(rows, "milliseconds_alone"),
        releases=max(map(_n_releases, rows), default=1),
        runs=runs,
        same_sample=frozenset(_READS_OF[each] for each in same if each in _READS_OF),
    )


def _n_releases(row: Row) -> int:
    """Return how often a row's training texts are released; 1 unless a network is trained."""
    if not (is_of_network(row["defence"]) and "reader_settings" in row):
        return 1
    return releases_of({**row, "defence": row["defence_settings"]["sends"]})


def _first_per_seed(rows: Sequence[Row], measure: str) -> list[Row]:
    """Return the first row of each seed that has a measure.

    Attackers that were added later have rows of their own, which repeat shared measures: these are
    no second sample.
    """
    holds = [row for row in rows if measure in row.scores]
    return list({row["seed"]: row for row in reversed(holds)}.values())[::-1]


def _mean_fact(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a fact over the rows that have it; None if none has."""
    told = [float(row.facts[name]) for row in rows if name in row.facts]
    return sum(told) / len(told) if told else None
