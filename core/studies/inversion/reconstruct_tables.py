"""Markdown tables of the sentence study: by length, lengths pooled, and calibration."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leakscope.core.attacks.inversion.reconstruct.scores import MEASURES
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import ResultTable, Row
from leakscope.core.results.tables import markdown_table
from leakscope.core.studies.deniability.odds import describe_guarantee

READERS = {
    "blind": "without the vector: one sentence per length",
    "nearest": "the nearest bundled sentence",
    "bag": "the words of `search`, in its order",
    "reconstruct": "`reconstruct`",
}

_TOGETHER = (16, 32)
"""Word limits up to which lengths are pooled, weighted by their sentences."""


def parse_length(length: str) -> tuple[int, int]:
    """Parse a range of sentence lengths, FROM-TO in words, into its two ends.

    Raises
    ------
    InvalidInputError
        It is no such range.
    """
    found = re.fullmatch(r"(\d{1,4})-(\d{1,4})", length)
    if found is None or int(found[1]) > int(found[2]):
        raise InvalidInputError(f"--lengths takes FROM-TO in words, such as 4-8, got {length!r}.")
    return int(found[1]), int(found[2])


def pooled_score(rows: Sequence[Row], measure: str) -> Score:
    """Return a measure's mean over independent rows, weighted by their number of sentences.

    Each end of its interval adds the strata's distances to that end as independent errors do
    (Zou & Donner 2008), so it stays within any range that theirs stay within.
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


def by_reader(rows: Sequence[Row]) -> dict[tuple[Any, ...], ResultTable]:
    """Group the measured rows by defence, reader and budget; only `reconstruct` has a budget."""
    return ResultTable(rows).measured.group_by(
        "guarded_by",
        "reader",
        lambda row: row["budget"] if row["reader"] == "reconstruct" else -1,
    )


def markdown(rows: Sequence[Row]) -> str:
    """Format the study's rows as Markdown: readers by length and pooled, calibration, odds."""
    columns = ("vectors", "reader", "queries", "made", "words", "n", *MEASURES.values(), "cosine")
    lines: list[Sequence[object]] = []
    for (defence, reader, _), own in by_reader(rows).items():
        head = ("no defence" if defence == "none" else f"`{defence}`", READERS[reader])
        asked = f"{round(np.mean([row.facts['budget'] for row in own])):,}"
        for row in own:
            made = f"{round(row.facts.get('n_asked', row['budget'])):,}"  # it may stop below asked
            lines.append((*head, asked, made, row["length"], row["n"], *_score_cells(row)))
        for most in _TOGETHER:
            short = [row for row in own if parse_length(row["length"])[1] <= most]
            # No duplicate line if no length is longer.
            if len(short) > 1 and max(parse_length(row["length"])[1] for row in short) == most:
                n = sum(row["n"] for row in short)
                words = f"up to {most}, pooled"
                lines.append((*head, asked, "", words, n, *_pooled_cells(short)))
    failed = [f"- failed: {row.cell.get('length')}: {row.error}" for row in rows if row.error]
    table = [*markdown_table(columns, lines), *_calibration_table(rows), *_guarantee_lines(rows)]
    return "\n".join([*table, *failed]) + "\n"


def _pooled_cells(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table cells of each measure, pooled over rows."""
    for measure in MEASURES:
        yield pooled_score(rows, measure).format(is_bold=measure == "rouge_l")
    has_cosine = all("cosine" in row.scores for row in rows)
    yield pooled_score(rows, "cosine").format() if has_cosine else "–"


def _guarantee_lines(rows: Sequence[Row]) -> list[str]:
    """Return Markdown lines with the guarantee of each defence; empty if none has one."""
    names = dict.fromkeys(row["guarded_by"] for row in rows if not row.error)
    told = {
        name: describe_guarantee(read_defence(name), str(rows[0].get("encoder", "")))
        for name in names
    }
    lines = [f"- `{name}`: {said[:1].lower()}{said[1:]}" for name, said in told.items() if said]
    return ["", *lines] if lines else []


def _calibration_table(rows: Sequence[Row]) -> list[str]:
    """Return the Markdown table of stated confidence and actual accuracy; empty if not measured."""
    lines: list[Sequence[object]] = []
    for row in rows:
        for part in ("words", "sentences"):
            error = row.scores.get(f"calibration_{part}")
            if error is not None:
                told = (row.format(f"{name}_{part}") for name in ("told", "right"))
                head = (row["guarded_by"], row["length"], f"{row['budget']:,}", part)
                lines.append((*head, error.n, *told, error.format()))
    head = ("defence", "words", "queries", "confidence in")
    columns = (*head, "n", "stated", "right", "expected error")
    return ["", *markdown_table(columns, lines)] if lines else []


def _score_cells(row: Row) -> Iterator[str]:
    """Yield the table cells of a row's scores."""
    for measure in MEASURES:
        yield row.format(measure, is_bold=measure == "rouge_l")
    yield row.format("cosine") if "cosine" in row.scores else "–"
