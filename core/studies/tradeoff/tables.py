"""Markdown tables and descriptions of the trade-off: utility, leakage, cost and attackers.

A column is shown if any row has a value: rows of earlier versions have only words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS
from leakscope.core.defences.setting import strength
from leakscope.core.defences.trained.registry import is_of_network
from leakscope.core.formatting import capitalise
from leakscope.core.protocols import Access
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.deniability.odds import (
    COMPOSED,
    ODDS,
    ONE_RELEASE,
    format_odds_cell,
    odds_note,
)
from leakscope.core.studies.tradeoff.summary import READS, Point, summarise

COSTS: Mapping[str, Callable[[Point], float | None]] = {
    "training, minutes": lambda point: point.training_minutes,
    "milliseconds a text": lambda point: point.milliseconds,
}
"""Cost columns: title and value."""


def head(points: Sequence[Point], facts: Mapping[str, Any]) -> str:
    """Format the title and the paragraph above the table: measures, attackers, seeds and sizes."""
    more = notes(points, facts)
    machine = f" on {facts['machine']}" if "machine" in facts else ""
    attacked = (
        "Words recovered: by the strongest attacker, which the table of leakage names; "
        f"{describe_attack(facts)} "
        if any(point.leaks for point in points)
        else ""
    )
    return (
        "# Utility against leakage\n\n"
        f"Encoder {facts['encoder']}, frozen. {describe_use(facts)} "
        f"{attacked}{capitalise(describe_seeds(points))}; {_sizes(points)}. Cells are means over "
        "seeds with 95 % CI, from the greater of the error within a seed and the spread between "
        f"seeds; for tasks with an official split, from both. {facts['seconds'] / 60:.0f} minutes "
        f"of computing{machine}.\n\n" + (f"{' '.join(more)}\n\n" if more else "")
    )


def describe_seeds(points: Sequence[Point]) -> str:
    """Describe the number of seeds, and how many settings have fewer."""
    runs = [min(s.n_seeds for s in (*p.utility.values(), *p.leaks.values())) for p in points]
    most = max(runs, default=0)
    told = f"{most} random seed{'s' * (most != 1)}"
    fewer = [n for n in runs if n < most]
    if not fewer:
        return told
    ends = " to ".join(map(str, _smallest_and_largest(fewer)))
    return f"{told} ({len(fewer)} of {len(runs)} settings so far with {ends})"


def _sizes(points: Sequence[Point]) -> str:
    """Describe the numbers of texts in attacks and tasks."""
    told = [f"{task} {score.n:,}" for task, score in points[0].utility.items()] if points else []
    if not any(point.leaks for point in points):
        return f"n for utility: {', '.join(told)}"
    words = "n for words is the sum over seeds"
    return f"{words}, n for utility: {', '.join(told)}" if told else words


Column = tuple[str, Callable[[Point], str], str]
"""A column of a table: its title, the cell of a point, and the cell of guessing."""


def leak_columns(points: Sequence[Point]) -> list[Column]:
    """Build column definitions of the leakage that was measured: words, attribute, members."""
    found: list[Column] = []
    leaks = [point.leakage for point in points if point.leaks]
    if leaks:
        found += [
            ("words recovered, F1", lambda point: point.leakage.format(), format_chance(leaks[0])),
            ("by", lambda point: point.attacker, ""),
            ("needs", lambda point: attacker_family(point.attacker)[1], ""),
            ("n", lambda point: f"{point.leakage.n:,}", ""),
            ("seeds", lambda point: str(point.leakage.n_seeds), ""),
        ]
    open_scores = [score for point in points for score in point.all_words.values()]
    if open_scores:
        every = "of all words, F1"
        chance = f"{open_scores[0].chance:.1f}"
        found.append((every, lambda point: format_score(point.leakage_of_all_words), chance))
    for what in ("attribute", "membership"):
        read = [score for point in points for score in point.read_by(what).values()]
        if read:
            found += _strongest_columns(what, f"{read[0].chance:.1f}")
    if leaks:
        found.append(("unchanged tokens, %", lambda point: format_score(point.token_inversion), ""))
    return found


def _strongest_columns(what: str, chance: str) -> list[Column]:
    """Build the two columns of a target's strongest attacker: its score and its name."""

    def strongest(point: Point) -> tuple[str, Score | None]:
        """Return the strongest attacker and its score; an empty name and None if none was tried."""
        return point.strongest(what) or ("", None)

    return [
        (READS[what], lambda point: format_score(strongest(point)[1]), chance),
        ("by", lambda point: strongest(point)[0], ""),
    ]


def cost_columns(points: Sequence[Point], facts: Mapping[str, Any]) -> list[Column]:
    """Build the columns of training time, time per text and guaranteed odds, where known."""
    found: list[Column] = []
    for name, cost in COSTS.items():
        is_shown = cost is not COSTS["milliseconds a text"] or _is_timed(points)
        if is_shown and any(cost(point) is not None for point in points):
            found.append((name, lambda point, cost=cost: _format_cost(cost(point)), ""))  # type: ignore[misc]
    encoder = str(facts.get("encoder", ""))
    if any(format_odds_cell(point.spec, encoder) for point in points):
        if any(point.releases > 1 for point in points):
            found.append(("releases of a text", lambda point: str(point.releases), ""))
        found.append(
            (ODDS.lower(), lambda point: format_odds_cell(point.spec, encoder, point.releases), "")
        )
    return found


def format_score(score: Score | None) -> str:
    """Format a score; "" if there is none."""
    return "" if score is None else score.format()


def format_chance(score: Score) -> str:
    """Format a score's chance level; "" if unknown."""
    return "" if math.isnan(score.chance) else f"{score.chance:.1f}"


def _format_cost(value: float | None) -> str:
    """Format a cost with two decimals; "" if not measured."""
    return "" if value is None else f"{value:.2f}"


def notes(points: Sequence[Point], facts: Mapping[str, Any]) -> list[str]:
    """Return the notes that explain further columns, as a list of sentences."""
    found = []
    if any(point.all_words for point in points):
        found.append(
            "Words recovered: only words of the attacker's vocabulary count. Of all words: words "
            "outside the vocabulary count as missed, for the same attacker."
        )
    if any(point.attribute for point in points):
        found.append(
            f"Attribute ({facts.get('attribute', 'of the texts')}): {facts.get('n_labels', '')} "
            "values drawn at random, inferred by new attackers who were trained on other texts "
            f"behind the same defence (at most {facts.get('n_attribute_known', 0):,}). Guessing "
            "always answers the most frequent value."
        )
    if any(point.membership for point in points):
        found.append(
            "Membership: whether a classifier on the vectors was trained on a text. "
            f"{facts.get('n_attacked', 0):,} texts, half of them members; "
            f"{facts.get('n_shadows', 0)} shadow models on the same defended vectors. Guessing "
            "reaches 50."
        )
    if any(point.leaves_vectors for point in points):
        found.append(
            "private_head leaves vectors unchanged, so words and attributes leak as without a "
            "defence. Its accuracy is that of a classifier trained with noise, compared with the "
            "usual classifier."
        )
    if any(is_of_network(point.defence) for point in points):
        found.append(
            "constrained is a network fine-tuned under noise, one per task. It releases only what "
            "the mechanism on its input releases, so leakage of words is that of the mechanism. "
            "Its accuracy is compared with a linear classifier on undefended vectors, and may "
            "exceed it."
        )
    has_several = any(point.releases > 1 for point in points)
    if has_several:
        found.append(
            "If a training text is released once per epoch, the odds cover all releases, but the "
            "attackers here have only one. An attacker with all releases recovers more."
        )
    if _is_timed(points):
        found.append(
            f"Milliseconds: encoder and defence, mean over a batch of {facts.get('n_timed', 0)} "
            f"texts{_in_turn(points)}. Minutes: training of the defence, without the encoding."
        )
    covers = COMPOSED if has_several else ONE_RELEASE
    if odds := odds_note([p.spec for p in points], str(facts.get("encoder", "")), covers):
        found.append(f"Odds: {odds}")
    return found


def _is_timed(points: Sequence[Point]) -> bool:
    """Return whether the time per text was measured without other work at the same time."""
    is_attacked = any(point.leaks for point in points)
    return any(
        point.milliseconds is not None and (is_attacked or point.milliseconds_alone)
        for point in points
    )


def _in_turn(points: Sequence[Point]) -> str:
    """Describe that defence and encoder were timed in alternation; "" if they were not."""
    alone = [p.milliseconds_alone for p in points if p.milliseconds_alone is not None]
    if not alone:
        return ""
    ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(alone), max(alone))))
    return f", the least of several rounds, in turn with the encoder alone, which took {ends}"


def attackers_table(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown table of attackers: target, family, access, sizes; may be empty."""
    told: dict[tuple[str, str], dict[str, Any]] = {}
    sizes: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for name, each in row.facts.get("attackers_told", {}).items():
            place = (str(row["part"]), name)
            told.setdefault(place, each)
            sizes.setdefault(place, set()).update(
                score.n
                for measure, score in row.scores.items()
                if measure.partition(": ")[2] == name
            )
    if not told:
        return []
    reads = {"attack": "words", "attribute": "attribute", "membership": "membership"}
    lines = [
        (
            name,
            reads.get(part, part),
            attacker_family(name)[0] or each["family"],
            each["access"] or attacker_family(name)[1],
            f"{each['n_known']:,}",
            " to ".join(f"{n:,}" for n in _smallest_and_largest(sizes[part, name])),
        )
        for (part, name), each in told.items()
    ]
    head = ("attacker", "recovers", "family", "needs", "training texts", "n per seed")
    return ["", "## The attackers", "", *markdown_table(head, lines)]


def _smallest_and_largest(numbers: Iterable[int]) -> list[int]:
    """Return the smallest and largest number in a list; one if equal, none if there are none."""
    ordered = sorted(numbers)
    return sorted({*ordered[:1], *ordered[-1:]})


_ANSWERS = "the classifier's probabilities for a text and its class"
_SHADOWS = f"{_ANSWERS}, and models trained by the same recipe on the same kind of texts"

_TOLD: Mapping[str, tuple[str, str]] = {
    "tuned": ("probe-started classifier", Access.PAIRS.needs),
    "search": ("re-embedding search", Access.QUERIES.needs),
    "shipped": ("re-embedding search", Access.QUERIES.needs),
    "reconstruct": ("sentence search", Access.QUERIES.needs),
    "tokens": ("token decoder", "the released text, or token vectors and the encoder's own"),
    "posterior": ("token decoder", "the release, the mechanism and its own texts"),
    "grid": (
        "token decoder, by rounding",
        "the release, the mechanism and its floating-point code, and its own texts",
    ),
    "retrieval": ("nearest neighbours", Access.PAIRS.needs),
    "probe_mlc": ("probe-started classifier, retrained", Access.PAIRS.needs),
    "linear": ("linear classifier", Access.PAIRS.needs),
    "mlp": ("network with one hidden layer", Access.PAIRS.needs),
    "knn": ("nearest neighbours", Access.PAIRS.needs),
}
"""Each attacker's family, and its needs in addition to the vector or the model's answer."""


def attacker_family(name: str) -> tuple[str, str]:
    """Return an attacker's family, and what it needs; empty strings if unknown."""
    entry = CLASSIFIER_ATTACKS.get(name)
    if entry is None:
        return _TOLD.get(name, ("", ""))
    return entry.title, _ANSWERS if entry.needs == "nothing" else _SHADOWS


def attacker_facts(names: Iterable[str], n_known: int) -> dict[str, dict[str, Any]]:
    """Return each attacker's family, access and number of known texts, as facts of a row."""
    return {
        name: {
            "family": attacker_family(name)[0],
            "access": attacker_family(name)[1],
            "n_known": 0 if name == "feature" else n_known,
        }
        for name in names
    }


def describe_use(facts: Mapping[str, Any]) -> str:
    """Describe how utility was measured, in a few sentences."""
    if "n_train" not in facts:
        return "Utility was not measured."
    n_train, n_test = facts["n_train"], facts["n_test"]
    part, apart = "the test part", ""
    if "task_near" in facts:
        part = "the development part, or the test part if there is none"
        apart = " No test text nearly repeats a training text."
    sizes = (
        f"{n_train} training and {n_test} test texts (a random subset of each task)"
        if n_train and n_test
        else f"the official split, tested on {part}, or a split of four fifths to one fifth"
    )
    drawn = "".join(
        f" {', '.join(each['tasks'])}: {each['n_train']:,} training and {each['n_test']:,} test "
        f"texts, drawn at random{_describe_precision(each['precision'], facts)}."
        for each in facts.get("subsets", ())
    )
    return (
        f"Accuracy in per cent of a linear classifier on {sizes}; STS-b: Spearman × 100 of "
        "cosine and human scores"
        + (
            f"; search: the right text found first among {facts['n_searched']}, in per cent"
            if "n_searched" in facts
            else ""
        )
        + "".join(
            f"; {name}: nearest training text with the label of the test text, in per cent"
            for name in facts.get("label_searches", ())
        )
        + "."
        + drawn
        + apart
    )


def _describe_precision(precision: str, facts: Mapping[str, Any]) -> str:
    """Return `, encoded in PRECISION` if other tasks use another precision."""
    return "" if precision in ("", facts.get("encoder_precision")) else f", encoded in {precision}"


def describe_attack(facts: Mapping[str, Any]) -> str:
    """Describe the attackers' knowledge, in a few sentences."""
    if "n_auxiliary" not in facts:
        return "no attack was measured."
    start = "start from the shipped weights" if facts.get("start") else "start from scratch"
    n = f"{facts['n_auxiliary']:,}"
    return (
        f"every attacker knows the defence and has {n} sentences of its own. Attackers on vectors "
        f"{start} and train on the defended vectors of their {n} sentences. The targets are "
        f"{facts['n_targets']:,} other sentences, on which no attacker was trained."
    )


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown tables of utility, leakage and cost, with 95 % CI."""
    found = summarise(rows)
    points = found.points
    tables: dict[str, list[Column]] = {
        "Utility": [
            (task, partial(_format_utility, task), format_chance(points[0].utility[task]))
            for task in (found.tasks if points else ())
        ],
        "Leakage": leak_columns(points),
        # A single attacker is the strongest, which the table above has.
        "Leakage, by attacker": [
            (name, partial(_format_attacker, name), "")
            for name in found.attackers
            if len(found.attackers) > 1
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


def _format_utility(task: str, point: Point) -> str:
    """Format a point's utility for a task; "" if it was not measured."""
    return format_score(point.utility.get(task))


def _format_attacker(name: str, point: Point) -> str:
    """Format what one attacker recovers at a point; "" if it was not tried."""
    return format_score(point.leaks.get(name))


def _setting_table(points: Sequence[Point], columns: Sequence[Column]) -> list[str]:
    """Format a Markdown table with a line per setting, after a line for guessing if known."""
    guesses = [guess for _, _, guess in columns]
    lines = [["guessing", "", *guesses]] if any(guesses) else []
    for point in points:
        lines.append([point.defence, point.label, *(cell_of(point) for _, cell_of, _ in columns)])
    return markdown_table(["defence", "strength", *(title for title, _, _ in columns)], lines)
