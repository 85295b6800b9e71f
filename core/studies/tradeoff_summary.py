"""Rows of the trade-off study as points: one per defence and strength, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.defences.registry import DEFENCES
from core.results import Score
from core.studies.defence_grid import is_of_model, is_of_network, sent_by
from core.studies.odds import releases_of
from core.studies.provenance import Provenance
from core.studies.rows import Row, failures, mean_row_score
from core.studies.tables import markdown_table
from core.studies.tradeoff_point import Point, known_entry, strength
from core.studies.tradeoff_said import POSTERIOR, attack_said, attack_version, use_said
from core.studies.tradeoff_tables import attackers_table, head, more_columns
from core.tasks.names import USES, use_of

__all__ = [
    "ALL_WORDS",
    "ATTRIBUTE",
    "FACTS",
    "LEAKAGE",
    "MEMBERSHIP",
    "TOKEN_INVERSION",
    "Point",
    "Tradeoff",
    "change_measure",
    "leakage_measure",
    "markdown",
    "attack_said",
    "strength",
    "summarise",
    "use_said",
    "utility_measure",
]

LEAKAGE = "token_set_f1"
"""What a row calls the F1 of an attacker; `leakage_measure` says whose."""
ATTRIBUTE = "attribute_top1"
"""What it calls the per cent of targets whose attribute an attacker names first."""
MEMBERSHIP = "membership_auc"
"""What it calls 100 × the AUC of an attack on members."""
TOKEN_INVERSION = "token_inversion"
"""What it calls the share of tokens that come back."""
ALL_WORDS = "all_words_f1"
"""What it calls the F1 in which words that no attacker can name count as missed."""

FACTS = ("study", "n_train", "n_test", "n_searched", "n_auxiliary", "n_targets", "encoder",
          "attack", "settings", "auxiliary", "start", "encoder_precision", "encoder_backend",
          "machine", "attributes", "attribute", "n_labels", "n_attribute_known",
          "n_attribute_targets", "task", "task_near", "n_attacked", "n_shadows",
          "n_timed", "label_searches")  # fmt: skip
"""What all rows share, or all that attack, or all that use."""

_READ = (LEAKAGE, ATTRIBUTE, MEMBERSHIP, ALL_WORDS)
"""What attackers read; all else is usefulness."""
_READS_OF = {LEAKAGE: "words", ATTRIBUTE: "attribute", MEMBERSHIP: "membership"}
"""Measures of what an attacker may be after."""
_OF_VECTORS = ("attack", "attribute")
"""The parts that say what vectors tell."""
_OPTIONAL = {"attribute", "membership", "time"}  # those that a point may be without

_Place = tuple[str, tuple[tuple[str, Any], ...]]


def utility_measure(task: str, measure: str) -> str:
    """Return what a row calls the score of a task, such as `accuracy: TREC`."""
    return f"{measure}: {task}"


def leakage_measure(attacker: str, measure: str = LEAKAGE) -> str:
    """Return what a row calls the F1 of an attacker, such as `token_set_f1: tuned`."""
    return f"{measure}: {attacker}"


def change_measure(task: str, measure: str) -> str:
    """Return what a row calls the difference of a task's score to that without a defence."""
    return f"{_CHANGE}{measure}: {task}"


_CHANGE = "change of "


@dataclass(frozen=True)
class Tradeoff:
    """All points of a study, and the facts of its making.

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
        """The tasks in the order measured."""
        return list(self.points[0].utility)

    @property
    def uses(self) -> list[str]:
        """What the vectors were used for in any task: keys of `core.tasks.names.USES`."""
        found = {use_of(self.measures.get(task, "")) for task in self.tasks}
        return [use for use in USES if use in found]

    def tasks_of(self, use: str) -> list[str]:
        """Return the tasks of a use in the order measured."""
        return [task for task in self.tasks if use_of(self.measures.get(task, "")) == use]

    def opening_task(self, use: str) -> str:
        """Return the task of a use that most settings were measured for, the first of equals."""
        return max(self.tasks_of(use), key=lambda t: sum(t in p.utility for p in self.points))

    @property
    def attackers(self) -> list[str]:
        """The attackers of any point."""
        return list(dict.fromkeys(name for point in self.points for name in point.leaks))

    @property
    def provenances(self) -> list[Provenance]:
        """When, by what and where its points were measured, where that is told."""
        return [each for point in self.points for each in point.provenances]

    @property
    def undefended(self) -> Point:
        """The encoder without any defence."""
        baselines = {name for name, entry in DEFENCES.items() if entry.is_baseline}
        return next(point for point in self.points if point.defence in baselines)


def summarise(rows: Sequence[Row]) -> Tradeoff:
    """Return a point for each defence at each strength, of the cells that were measured.

    One of which usefulness or words read are not known yet is left out, as is one that releases
    tokens while the likeliest were read of others, and not of its. Of one that leaves vectors
    as they are, vectors tell what they tell without a defence; of a network that reads what another
    defence releases, what they tell behind that.
    """
    measured: dict[_Place, list[Row]] = {}
    for row in rows:
        if not row.error:
            place = (row["defence"], tuple(row["defence_settings"].items()))
            measured.setdefault(place, []).append(row)
    needed = {row.get("part") for row in rows} - _OPTIONAL
    joined = _with_lent(measured)
    is_tried = any(_is_of_posterior(row) for row in rows)
    whole = {
        place: own
        for place, own in joined.items()
        if needed <= {r.get("part") for r in own}
        and (not is_tried or any(map(_is_of_posterior, own)) or not _releases_tokens(place[0]))
    }
    points = tuple(_point(*place, rows=own) for place, own in whole.items())
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
    """Return the tasks measured on other texts than the first row's, with how they were measured.

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
    """Whether the likeliest tokens are read here; a row that failed tells it, too."""
    return POSTERIOR in row.get("attackers", ()) and row.get("part", "attack") == "attack"


def _releases_tokens(defence: str) -> bool:
    entry = known_entry(defence)
    return bool(entry and entry.releases_tokens)


def _with_lent(measured: Mapping[_Place, list[Row]]) -> dict[_Place, list[Row]]:
    """Return rows by defence; one that releases nothing of its own has those of who attacks that.

    That is what is released without a defence, or behind the one that a network's users have. A
    text takes as long, too, but for a network of another kind than the encoder.
    """
    bases = {name for name, entry in DEFENCES.items() if entry.is_baseline}
    plain = next((own for (name, _), own in measured.items() if name in bases), [])
    lent: dict[_Place, list[Row]] = {}
    for name, settings in measured:
        parts = {*_OF_VECTORS, "time"}
        if is_of_model(name):
            lenders = plain
        elif is_of_network(name):
            sent = sent_by(dict(settings))
            lenders = measured.get((sent.name, sent.settings), [])
            if dict(settings).get("network") != "transformer":
                parts.remove("time")
        else:
            continue
        lent[name, settings] = [row for row in lenders if row.get("part") in parts]
    return {place: [*own, *lent.get(place, ())] for place, own in measured.items()}


def _point(defence: str, settings: tuple[tuple[str, Any], ...], *, rows: Sequence[Row]) -> Point:
    measures = dict.fromkeys(measure for row in rows for measure in row.scores)
    same = {task for row in rows for task in row.facts.get("same_texts", ())}
    # All seeds draw their targets from the same documents: more seeds tell no more of these.
    if any(row.facts.get("unit") == "document" for row in rows):
        same.update((LEAKAGE, ALL_WORDS))
    if any(row.facts.get("n_groups") for row in rows):
        same.add(ATTRIBUTE)
    same.add(MEMBERSHIP)  # all seeds deal out the texts of one task
    means = {
        m: mean_row_score(one, m, is_same_sample=not same.isdisjoint(m.split(": ")))
        for m in measures
        for one in [_one_a_seed(rows, m)]
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
                each = _one_a_seed(rows, measure)
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
        milliseconds=_mean_fact(_timed_apart(rows), "milliseconds_a_text"),
        milliseconds_alone=_mean_fact(rows, "milliseconds_alone"),
        releases=max(map(_releases, rows), default=1),
        runs=runs,
        same_sample=frozenset(_READS_OF[each] for each in same if each in _READS_OF),
    )


def _releases(row: Row) -> int:
    """Return how often a text is released where a row measures; once unless a network learns."""
    if not (is_of_network(row["defence"]) and "reader_settings" in row):
        return 1
    return releases_of({**row, "defence": row["defence_settings"]["sends"]})


def _one_a_seed(rows: Sequence[Row], measure: str) -> list[Row]:
    """Return the first row of each seed that holds a measure.

    Attackers that were tried later have a row of their own, which tells again what every row of a
    defence tells. That is no second sample of it.
    """
    holds = [row for row in rows if measure in row.scores]
    return list({row["seed"]: row for row in reversed(holds)}.values())[::-1]


def _timed_apart(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that time alone is of, where there are any; else all."""
    return [row for row in rows if row.get("part") == "time"] or rows


def _mean_fact(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a fact over the rows that tell it; None where none does."""
    told = [float(row.facts[name]) for row in rows if name in row.facts]
    return sum(told) / len(told) if told else None


_FORMER_ATTACKER = "probe_mlc"


def markdown(rows: Sequence[Row]) -> str:
    """Return all points as a Markdown table: mean over seeds [95 % interval], guessing first."""
    found = summarise(rows)
    tasks = found.tasks if found.points else []
    attackers = found.attackers
    more = more_columns(found.points, found.facts)
    columns = ["defence", "strength", *tasks]
    if attackers:
        columns += ["words recovered, F1", "by",
                    *(f"by {name}" for name in attackers if len(attackers) > 1),
                    "tokens back, %"]  # fmt: skip
    columns += [name for name, _, _ in more]
    lines: list[list[str]] = []
    if found.points:
        first = found.points[0]
        guesses = [first.utility[task] for task in tasks]
        guesses += [first.leakage] if attackers else []
        told = ["guessing", "", *(_chance(score) for score in guesses)]
        gap = [""] * (len(columns) - len(more) - len(told))
        lines.append([*told, *gap, *(guess for _, _, guess in more)])
    for point in found.points:
        told = [_said(point.utility.get(task)) for task in tasks]
        if attackers:
            each = [_said(point.leaks.get(name)) for name in attackers if len(attackers) > 1]
            told += [point.leakage.said(), point.attacker, *each, _said(point.token_inversion)]
        told += [of_point(point) for _, of_point, _ in more]
        lines.append([point.defence, point.label, *told])
    for row in failures(rows):
        told = [f"seed {row['seed']} failed: {row.error}"]
        lines.append([row["defence"], strength(row["defence"], row["defence_settings"]), *told])
    table = [*markdown_table(columns, lines), *attackers_table(rows)]
    return head(found.points, found.facts) + "\n".join(table) + "\n"


def _said(score: Score | None) -> str:
    return "" if score is None else score.said()


def _chance(score: Score) -> str:
    return "" if math.isnan(score.chance) else f"{score.chance:.1f}"
