"""Columns and notes of the trade-off's tables: utility, leakage, cost and attackers.

A column is shown if any row has a value: rows of earlier versions have only words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from leakscope.core.defences.trained.registry import is_of_network
from leakscope.core.results import Score
from leakscope.core.results.rows import Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.deniability.odds import (
    COMPOSED,
    ODDS,
    ONE_RELEASE,
    format_odds_cell,
    odds_note,
)
from leakscope.core.studies.tradeoff.captions import attacker_family, describe_attack, describe_use
from leakscope.core.studies.tradeoff.point import READS, Point

COSTS: Mapping[str, Callable[[Point], float | None]] = {
    "training, minutes": lambda point: point.training_minutes,
    "milliseconds a text": lambda point: point.milliseconds,
}
_TIME = "milliseconds a text"
"""The column title of the time per text."""

_OTHERS = ("attribute", "membership")


def head(points: Sequence[Point], facts: Mapping[str, Any]) -> str:
    """Return the title and the paragraph above the table: measures, attackers, seeds and sizes."""
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
        f"{attacked}{_capitalise(describe_seeds(points))}; {_sizes(points)}. Cells are means over "
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
    ends = " to ".join(map(str, sorted({min(fewer), max(fewer)})))
    return f"{told} ({len(fewer)} of {len(runs)} settings so far with {ends})"


def _sizes(points: Sequence[Point]) -> str:
    """Describe the number of texts in attacks and tasks."""
    told = [f"{task} {score.n:,}" for task, score in points[0].utility.items()] if points else []
    if not any(point.leaks for point in points):
        return f"n for utility: {', '.join(told)}"
    words = "n for words is the sum over seeds"
    return f"{words}, n for utility: {', '.join(told)}" if told else words


Column = tuple[str, Callable[[Point], str], str]
"""A column of a table: its title, the cell of a point, and the cell of guessing."""


def leak_columns(points: Sequence[Point]) -> list[Column]:
    """Return the columns of what the strongest attackers recover; empty if none was tried."""
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
        found.append(("of all words, F1", _format_all_words_f1, f"{open_scores[0].chance:.1f}"))
    for what in _OTHERS:
        read = [score for point in points for score in point.read_by(what).values()]
        if read:
            found.append((READS[what], _strongest_score(what), f"{read[0].chance:.1f}"))
            found.append(("by", _strongest_name(what), ""))
    if leaks:
        found.append(("unchanged tokens, %", lambda point: format_score(point.token_inversion), ""))
    return found


def cost_columns(points: Sequence[Point], facts: Mapping[str, Any]) -> list[Column]:
    """Return the columns of training time, time per text and guaranteed odds, where known."""
    found: list[Column] = []
    for name, cost in COSTS.items():
        is_shown = name != _TIME or _is_timed(points)
        if is_shown and any(cost(point) is not None for point in points):
            found.append((name, _format_cost(cost), ""))
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


def _format_all_words_f1(point: Point) -> str:
    """Format the strongest attacker's F1 if words outside the vocabulary count as missed."""
    return format_score(point.leakage_of_all_words)


def _strongest_score(what: str) -> Callable[[Point], str]:
    """Return a formatter of a point's strongest score on a target."""

    def format_one(point: Point) -> str:
        """Format the strongest score on the target; "" if none was tried."""
        found = point.strongest(what)
        return found[1].format() if found else ""

    return format_one


def _strongest_name(what: str) -> Callable[[Point], str]:
    """Return a function that names a point's strongest attacker on a target."""

    def format_one(point: Point) -> str:
        """Return the name of the strongest attacker; "" if none was tried."""
        found = point.strongest(what)
        return found[0] if found else ""

    return format_one


def _format_cost(cost: Callable[[Point], float | None]) -> Callable[[Point], str]:
    """Return a formatter of a point's cost."""

    def format_one(point: Point) -> str:
        """Format the cost with two decimals; "" if not measured."""
        value = cost(point)
        return "" if value is None else f"{value:.2f}"

    return format_one


_OF_NETWORKS = (
    "constrained is a network fine-tuned under noise, one per task. It releases only what the "
    "mechanism on its input releases, so leakage of words is that of the mechanism. Its accuracy "
    "is compared with a linear classifier on undefended vectors, and may exceed it."
)
_SEVERAL = (
    "If a training text is released once per epoch, the odds cover all releases, but the attackers "
    "here have only one. An attacker with all releases recovers more."
)


def notes(points: Sequence[Point], facts: Mapping[str, Any]) -> list[str]:
    """Return the notes on the further columns, a sentence each."""
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
        found.append(_OF_NETWORKS)
    if any(point.releases > 1 for point in points):
        found.append(_SEVERAL)
    if _is_timed(points):
        found.append(
            f"Milliseconds: encoder and defence, mean over a batch of {facts.get('n_timed', 0)} "
            f"texts{_in_turn(points)}. Minutes: training of the defence, without the encoding."
        )
    covers = COMPOSED if any(point.releases > 1 for point in points) else ONE_RELEASE
    if odds := odds_note([p.spec for p in points], str(facts.get("encoder", "")), covers):
        found.append(f"Odds: {odds}")
    return found


def _capitalise(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


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
    """Return the table of attackers: target, family, access and numbers of texts; may be empty."""
    told: dict[tuple[str, str], dict[str, Any]] = {}
    sizes: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        for name, each in row.facts.get("attackers_told", {}).items():
            place = (str(row["part"]), name)
            told.setdefault(place, each)
            sizes.setdefault(place, set()).update(
                score.n for measure, score in row.scores.items() if _is_by(measure, name)
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
            " to ".join(f"{n:,}" for n in _range_of_sizes(sizes[part, name])),
        )
        for (part, name), each in told.items()
    ]
    head = ("attacker", "recovers", "family", "needs", "training texts", "n per seed")
    return ["", "## The attackers", "", *markdown_table(head, lines)]


def _is_by(measure: str, name: str) -> bool:
    """Return whether a measure is of an attacker."""
    return measure.partition(": ")[2] == name


def _range_of_sizes(sizes: set[int]) -> list[int]:
    """Return the smallest and largest size; one value if equal, none if empty."""
    return sorted({min(sizes), max(sizes)}) if sizes else []
