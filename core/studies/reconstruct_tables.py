"""The tables of sentences read back: by length, lengths together, and how sure the answers were."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from core.attacks.inversion.reconstruct.scores import MEASURES
from core.defences.told import read_defence
from core.errors import InvalidInputError
from core.results import Interval, Score
from core.studies.odds import odds_told
from core.studies.rows import Row
from core.studies.tables import markdown_table

__all__ = ["READERS", "by_reader", "ends_of", "markdown", "pooled"]

READERS = {
    "blind": "without the vector: one sentence for all of a length",
    "nearest": "the nearest bundled sentence",
    "bag": "the words of `search`, as they come",
    "reconstruct": "`reconstruct`",
}

_TOGETHER = (16, 32)
"""Words up to which lengths are told together, each length weighing by its sentences."""


def ends_of(length: str) -> tuple[int, int]:
    """Return the least and the most words of a length told as FROM-TO.

    Raises
    ------
    InvalidInputError
        It is no such range.
    """
    found = re.fullmatch(r"(\d{1,4})-(\d{1,4})", length)
    if found is None or int(found[1]) > int(found[2]):
        raise InvalidInputError(f"--lengths takes FROM-TO in words, such as 4-8, got {length!r}.")
    return int(found[1]), int(found[2])


def pooled(rows: Sequence[Row], measure: str) -> Score:
    """Return the mean over strata that were drawn apart, each weighted by its sentences.

    Each end of its interval adds the strata's distances to that end as independent errors do
    (Zou & Donner 2008), so that it leaves no range that theirs keep to.
    """
    scores = [row.scores[measure] for row in rows if row.scores[measure].n]
    n = sum(score.n for score in scores)
    if not n:
        return Score(math.nan)
    share = [score.n / n for score in scores]
    value = sum(w * s.value for w, s in zip(share, scores, strict=True))
    down = math.hypot(*(w * (s.value - s.ci95.low) for w, s in zip(share, scores, strict=True)))
    up = math.hypot(*(w * (s.ci95.high - s.value) for w, s in zip(share, scores, strict=True)))
    chance = sum(w * s.chance for w, s in zip(share, scores, strict=True))
    return Score(value, Interval(value - down, value + up), n, chance)


def by_reader(rows: Sequence[Row]) -> dict[tuple[str, str, int], list[Row]]:
    """Return rows by defence, reader and budget."""
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if not row.error:
            budget = row["budget"] if row["reader"] == "reconstruct" else -1
            key = (row["guarded_by"], row["reader"], budget)
            found.setdefault(key, []).append(row)
    return found


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as Markdown: all lengths of a reader, and those up to 16 and 32 together."""
    columns = ("vectors", "reader", "queries", "made", "words", "n", *MEASURES.values(), "cosine")
    lines: list[Sequence[object]] = []
    for (defence, reader, _), own in by_reader(rows).items():
        head = ("as they are" if defence == "none" else f"`{defence}`", READERS[reader])
        asked = f"{round(np.mean([row.facts['budget'] for row in own])):,}"
        lines += [(*head, asked, _made(row), row["length"], row["n"], *_cells(row)) for row in own]
        for most in _TOGETHER:
            short = [row for row in own if ends_of(row["length"])[1] <= most]
            # No line twice where nothing is longer.
            if len(short) > 1 and max(ends_of(row["length"])[1] for row in short) == most:
                n = sum(row["n"] for row in short)
                words = f"up to {most}, together"
                lines.append((*head, asked, "", words, n, *_pooled_cells(short)))
    failed = [f"- failed: {row.cell.get('length')}: {row.error}" for row in rows if row.error]
    table = [*markdown_table(columns, lines), *_sure(rows), *_odds(rows)]
    return "\n".join([*table, *failed]) + "\n"


def _made(row: Row) -> str:
    """Return the mean number of queries that were made: a search ends where nothing gains."""
    return f"{round(row.facts.get('n_asked', row['budget'])):,}"


def _pooled_cells(rows: Sequence[Row]) -> Iterator[str]:
    for measure in MEASURES:
        yield pooled(rows, measure).said(is_bold=measure == "rouge_l")
    has_cosine = all("cosine" in row.scores for row in rows)
    yield pooled(rows, "cosine").said() if has_cosine else "–"


def _odds(rows: Sequence[Row]) -> list[str]:
    """Return what each η promises; nothing where none is among the defences."""
    names = dict.fromkeys(row["guarded_by"] for row in rows if not row.error)
    told = {name: odds_told(read_defence(name), str(rows[0].get("encoder", ""))) for name in names}
    lines = [f"- `{name}`: {said[:1].lower()}{said[1:]}" for name, said in told.items() if said]
    return ["", *lines] if lines else []


def _sure(rows: Sequence[Row]) -> list[str]:
    """Return a table of how sure the answers were and how often right; none where none told."""
    lines: list[Sequence[object]] = []
    for row in rows:
        for part in ("words", "sentences"):
            error = row.scores.get(f"calibration_{part}")
            if error is not None:
                told = (row.said(f"{name}_{part}") for name in ("told", "right"))
                head = (row["guarded_by"], row["length"], f"{row['budget']:,}", part)
                lines.append((*head, error.n, *told, error.said()))
    columns = ("vectors behind", "words", "queries", "confidence in", "n", "told", "right",
               "expected error")  # fmt: skip
    return ["", *markdown_table(columns, lines)] if lines else []


def _cells(row: Row) -> Iterator[str]:
    for measure in MEASURES:
        yield row.said(measure, is_bold=measure == "rouge_l")
    yield row.said("cosine") if "cosine" in row.scores else "–"
