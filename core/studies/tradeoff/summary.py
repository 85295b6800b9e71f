"""Rows of the trade-off study as points, one per defence and strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.assets import RESULTS
from leakscope.core.defences.registry import DEFENCES
from leakscope.core.defences.setting import entry_shown, input_mechanism, strength
from leakscope.core.defences.trained.registry import is_of_model, is_of_network
from leakscope.core.errors import ArtifactError, InvalidInputError
from leakscope.core.results import Score
from leakscope.core.results.provenance import Provenance
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table, read_rows, rows_from_json
from leakscope.core.storage.artifacts import read_json
from leakscope.core.studies.deniability.odds import releases_of
from leakscope.core.studies.tradeoff.captions import POSTERIOR, attack_version
from leakscope.core.studies.tradeoff.point import Point
from leakscope.core.studies.tradeoff.tables import (
    Column,
    attackers_table,
    cost_columns,
    format_chance,
    format_score,
    head,
    leak_columns,
)
from leakscope.core.tasks.names import USES, use_of

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
    """Return a row's measure of a task, such as `accuracy: TREC`."""
    return f"{measure}: {task}"


def leakage_measure(attacker: str, measure: str = LEAKAGE) -> str:
    """Return a row's measure of an attacker's F1, such as `token_set_f1: tuned`."""
    return f"{measure}: {attacker}"


def change_measure(task: str, measure: str) -> str:
    """Return a row's measure of a task's change from no defence."""
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
        """Return the task of a use that was measured for the most settings."""
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
    """Return the share of utility above guessing that a point keeps, by task."""
    base = undefended.utility
    return {
        task: (score.value - base[task].chance) / (base[task].value - base[task].chance)
        for task, score in point.utility.items()
        if base[task].value > base[task].chance
    }


def measured_etas(found: Tradeoff, mechanism: str) -> dict[float, Point]:
    """Return the points of a mechanism by η, in ascending order."""
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
    """Parse a trade-off from the JSON object of a file.

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
    """Return the shipped trade-off files of the bundled encoder; the first has the most tasks.

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
    return _read_tables(tuple((path, _modified(path)) for path in shipped_tables()))


def _modified(path: Path) -> int | None:
    """Return when a file was modified, in nanoseconds; None where it is missing."""
    return path.stat().st_mtime_ns if path.exists() else None


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
    """Summarise rows, and check that every point has a score of an attacker on words."""
    found = summarise(rows)
    _ = found.undefended, found.tasks
    if not all(point.leaks for point in found.points):
        raise InvalidInputError("No row has an attacker's score on words.")
    return found


def _not_a_tradeoff(name: str) -> ArtifactError:
    """Return the error for a file that is not the result of the study."""
    told = f"{name} is not a result of `leakscope study tradeoff`. Run the study again."
    return ArtifactError(told)


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
        and (not is_tried or any(map(_is_of_posterior, own)) or not _releases_tokens(place[0]))
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


def _subsets(rows: Sequence[Row], facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks measured on other texts than the first row's, with sizes and precision.

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


def _releases_tokens(defence: str) -> bool:
    """Return whether a defence is known to release tokens."""
    return entry_shown(defence).releases_tokens


def _with_shared_attacks(measured: Mapping[_Place, list[Row]]) -> dict[_Place, list[Row]]:
    """Add to defences without a release of their own the attack rows of what is released.

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
    """Average the rows of one setting to a point."""
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
            name = name or str(rows[0].get("attack", _FORMER_ATTACKER))
            read[head][name] = score
            if head in _READS_OF:
                each = _first_per_seed(rows, measure)
                runs[_READS_OF[head]][name] = tuple(row.scores[measure] for row in each)
        elif colon:
            (change if head.startswith(_CHANGE) else utility)[name] = score
    told = tuple(row.provenance for row in rows if row.provenance is not None)
    point = Point(
        defence, settings, utility, read[LEAKAGE], means.get(TOKEN_INVERSION), change, told
    )
    return replace(
        point,
        attribute=read[ATTRIBUTE],
        membership=read[MEMBERSHIP],
        all_words=read[ALL_WORDS],
        as_without=frozenset(task for row in rows for task in row.facts.get("as_without", ())),
        training_minutes=_mean_fact(rows, "training_minutes"),
        milliseconds=_mean_fact(_time_rows(rows), "milliseconds_a_text"),
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


def _time_rows(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that measure only time, if any; else all."""
    return [row for row in rows if row.get("part") == "time"] or rows


def _mean_fact(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a fact over the rows that have it; None if none has."""
    told = [float(row.facts[name]) for row in rows if name in row.facts]
    return sum(told) / len(told) if told else None


_FORMER_ATTACKER = "probe_mlc"


def markdown(rows: Sequence[Row]) -> str:
    """Format the study as Markdown tables of utility, leakage and cost: means with 95 % CI."""
    found = summarise(rows)
    points = found.points
    tables: dict[str, list[Column]] = {
        "Utility": [_task_column(points, task) for task in (found.tasks if points else ())],
        "Leakage": leak_columns(points),
        # A single attacker is the strongest, which the table above has.
        "Leakage, by attacker": [
            _attacker_column(name) for name in found.attackers if len(found.attackers) > 1
        ],
        "Cost and guarantee": cost_columns(points, found.facts),
    }
    lines = []
    for title, columns in tables.items():
        if columns:
            lines += [f"## {title}", "", *_setting_table(points, columns), ""]
    failed = [
        [row["defence"], strength(row["defence"], row["defence_settings"]), row["seed"], row.error]
        for row in ResultTable(rows).failed
    ]
    if failed:
        columns_of_failed = ["defence", "strength", "seed", "why"]
        lines += ["## Failed", "", *markdown_table(columns_of_failed, failed), ""]
    attackers = attackers_table(rows)
    return head(points, found.facts) + "\n".join([*lines[:-1], *attackers]) + "\n"


def _setting_table(points: Sequence[Point], columns: Sequence[Column]) -> list[str]:
    """Return a Markdown table with a line per setting, after a line for guessing if known."""
    guesses = [guess for _, _, guess in columns]
    lines = [["guessing", "", *guesses]] if any(guesses) else []
    for point in points:
        lines.append([point.defence, point.label, *(cell_of(point) for _, cell_of, _ in columns)])
    return markdown_table(["defence", "strength", *(title for title, _, _ in columns)], lines)


def _task_column(points: Sequence[Point], task: str) -> Column:
    """Return the column of the utility for a task."""
    chance = format_chance(points[0].utility[task])
    return task, lambda point: format_score(point.utility.get(task)), chance


def _attacker_column(name: str) -> Column:
    """Return the column of what one attacker recovers."""
    return name, lambda point: format_score(point.leaks.get(name)), ""
