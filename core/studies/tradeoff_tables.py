"""What the table of the trade-off tells beside words: attributes, members, costs, and who attacked.

A column stands where anything of it was measured: rows of earlier versions have words alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.studies.defence_grid import is_of_network
from core.studies.odds import COMPOSED, ODDS, ONE_RELEASE, kept_odds, odds_note
from core.studies.rows import Row
from core.studies.tables import markdown_table
from core.studies.tradeoff_point import READS, Point
from core.studies.tradeoff_said import attack_said, told_of, use_said

__all__ = ["COSTS", "attackers_table", "head", "more_columns", "notes", "seeds_said"]

COSTS: Mapping[str, Callable[[Point], float | None]] = {
    "training, minutes": lambda point: point.training_minutes,
    "milliseconds a text": lambda point: point.milliseconds,
}
_TIME = "milliseconds a text"
"""What a defence costs in time, by how a table calls it."""

_OTHERS = ("attribute", "membership")


def head(points: Sequence[Point], facts: Mapping[str, Any]) -> str:
    """Return the title, and what a reader of the table has to know."""
    more = notes(points, facts)
    machine = f" on {facts['machine']}" if "machine" in facts else ""
    attacked = (
        f"Words recovered: by the strongest of the attackers, named beside; {attack_said(facts)} "
        if any(point.leaks for point in points)
        else ""
    )
    return (
        f"# Utility against leakage\n\nEncoder {facts['encoder']}, frozen. {use_said(facts)} "
        f"{attacked}Under {seeds_said(points)}; {_sizes(points)}. Means "
        "over seeds with 95 % intervals: the greater of the error within a seed and the spread "
        "between seeds; of tasks with an official split, both. "
        f"{facts['seconds'] / 60:.0f} minutes of "
        f"computing{machine}.\n\n" + (f"{' '.join(more)}\n\n" if more else "")
    )


def seeds_said(points: Sequence[Point]) -> str:
    """Return under how many seeds points were measured, and how many of them under fewer."""
    runs = [min(s.n_seeds for s in (*p.utility.values(), *p.leaks.values())) for p in points]
    most = max(runs, default=0)
    told = f"{most} seed{'s' * (most != 1)}"
    fewer = [n for n in runs if n < most]
    if not fewer:
        return told
    ends = " to ".join(map(str, sorted({min(fewer), max(fewer)})))
    return f"{told} ({len(fewer)} of {len(runs)} settings so far under {ends})"


def _sizes(points: Sequence[Point]) -> str:
    """Return on how many texts words were attacked, and usefulness was tested."""
    told = [f"{task} {score.n:,}" for task, score in points[0].utility.items()] if points else []
    if not any(point.leaks for point in points):
        return f"n of usefulness are {', '.join(told)}"
    words = "n of words are of all seeds together"
    return f"{words}, those of usefulness {', '.join(told)}" if told else words


def more_columns(
    points: Sequence[Point], facts: Mapping[str, Any]
) -> list[tuple[str, Callable[[Point], str], str]]:
    """Return the columns that stand: name, what of a point, and what guessing reaches."""
    found: list[tuple[str, Callable[[Point], str], str]] = []
    if any(point.leaks for point in points):
        found += [
            ("n", lambda point: f"{point.leakage.n:,}", ""),
            ("seeds", lambda point: str(point.leakage.n_seeds), ""),
            ("needs", lambda point: told_of(point.attacker)[1], ""),
        ]
    open_scores = [score for point in points for score in point.all_words.values()]
    if open_scores:
        found.append(("of all words, F1", _of_all_words, f"{open_scores[0].chance:.1f}"))
    for what in _OTHERS:
        read = [score for point in points for score in point.read_by(what).values()]
        if read:
            found.append((READS[what], _strongest(what), f"{read[0].chance:.1f}"))
            found.append(("by", _by(what), ""))
    for name, cost in COSTS.items():
        is_shown = name != _TIME or _is_timed(points)
        if is_shown and any(cost(point) is not None for point in points):
            found.append((name, _cost(cost), ""))
    encoder = str(facts.get("encoder", ""))
    if any(kept_odds(point.spec, encoder) for point in points):
        if any(point.releases > 1 for point in points):
            found.append(("releases of a text", lambda point: str(point.releases), ""))
        found.append(
            (ODDS.lower(), lambda point: kept_odds(point.spec, encoder, point.releases), "")
        )
    return found


def _of_all_words(point: Point) -> str:
    """Return what the attacker reads who reads most, words outside the vocabulary missed."""
    score = point.leakage_of_all_words
    return "" if score is None else score.said()


def _strongest(what: str) -> Callable[[Point], str]:
    def said(point: Point) -> str:
        found = point.strongest(what)
        return found[1].said() if found else ""

    return said


def _by(what: str) -> Callable[[Point], str]:
    def said(point: Point) -> str:
        found = point.strongest(what)
        return found[0] if found else ""

    return said


def _cost(cost: Callable[[Point], float | None]) -> Callable[[Point], str]:
    def said(point: Point) -> str:
        value = cost(point)
        return "" if value is None else f"{value:.2f}"

    return said


_OF_NETWORKS = (
    "constrained is a network fine-tuned under noise, one a task: what leaves is what its users' "
    "mechanism releases, and words are read as behind that. Its accuracy is held against a linear "
    "classifier of undefended vectors and may be above it."
)
_SEVERAL = (
    "Where a training text is released several times, once per epoch, the odds are composed over "
    "all releases, but the attackers here have one of them: who has all reads more."
)


def notes(points: Sequence[Point], facts: Mapping[str, Any]) -> list[str]:
    """Return what a reader has to know of these columns, a sentence each."""
    found = []
    if any(point.all_words for point in points):
        found.append(
            "Words recovered are judged on words of the attacker's vocabulary; of all words: those "
            "that it cannot name count as missed, for the same attacker."
        )
    if any(point.attribute for point in points):
        found.append(
            f"Attribute ({facts.get('attribute', 'of the texts')}): {facts.get('n_labels', '')} "
            "values drawn by chance, named by fresh attackers who learnt from other texts behind "
            f"the same defence ({facts.get('n_attribute_known', 0):,} at most); guessing is the "
            "most frequent value."
        )
    if any(point.membership for point in points):
        found.append(
            "Members: whose texts a classifier on the vectors was trained on, "
            f"{facts.get('n_attacked', 0):,} texts, half of them members, "
            f"{facts.get('n_shadows', 0)} shadow models on the same defended vectors; guessing is "
            "50."
        )
    if any(point.leaves_vectors for point in points):
        found.append(
            "private_head leaves vectors as they are: words and attributes are read as without a "
            "defence; its accuracy is that of a classifier trained with noise, and is held against "
            "the usual one."
        )
    if any(is_of_network(point.defence) for point in points):
        found.append(_OF_NETWORKS)
    if any(point.releases > 1 for point in points):
        found.append(_SEVERAL)
    if _is_timed(points):
        found.append(
            f"Milliseconds: encoder and defence, a mean over a batch of {facts.get('n_timed', 0)} "
            f"texts{_in_turn(points)}. Minutes: of the defence's own training, without the "
            "encoding."
        )
    covers = COMPOSED if any(point.releases > 1 for point in points) else ONE_RELEASE
    if odds := odds_note([p.spec for p in points], str(facts.get("encoder", "")), covers):
        found.append(f"Odds: {odds}")
    return found


def _is_timed(points: Sequence[Point]) -> bool:
    """Whether points tell how long a text takes; usefulness alone is measured beside other work."""
    is_attacked = any(point.leaks for point in points)
    return any(point.milliseconds is not None and (is_attacked or point.milliseconds_alone)
               for point in points)  # fmt: skip


def _in_turn(points: Sequence[Point]) -> str:
    """Return how the time was taken, where the encoder was timed in turn."""
    alone = [p.milliseconds_alone for p in points if p.milliseconds_alone is not None]
    if not alone:
        return ""
    ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(alone), max(alone))))
    return f", the least of some rounds, in turn with the encoder alone, which took {ends}"


def attackers_table(rows: Sequence[Row]) -> list[str]:
    """Return who attacked, with what, and on how many texts a seed; nothing where no row tells."""
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
    reads = {"attack": "words", "attribute": "attribute", "membership": "members"}
    lines = [
        (name, reads.get(part, part), told_of(name)[0] or each["family"],
         each["access"] or told_of(name)[1],
         f"{each['n_known']:,}", " to ".join(f"{n:,}" for n in _ends(sizes[part, name])))
        for (part, name), each in told.items()
    ]  # fmt: skip
    head = ("attacker", "reads", "family", "needs", "learns from, texts", "n a seed")
    return ["", "## Who attacked", "", *markdown_table(head, lines)]


def _is_by(measure: str, name: str) -> bool:
    return measure.partition(": ")[2] == name


def _ends(sizes: set[int]) -> list[int]:
    return sorted({min(sizes), max(sizes)}) if sizes else []
