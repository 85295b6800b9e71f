"""Look up a figure's source: a row of a result file, a benchmark, or an expression over these.

inversion-bbc attack=msp auxiliary=cross            the F1 of that row of results/
names part=probing hits_1                           another of its scores
file results/names.json rows.0.value          an entry of any JSON file
bench jobs "encoding behind an open page" note 1    a benchmark: its value, goal, or a number
of its note
greatest of SOURCE · least of SOURCE                of all rows that fit, not of the only one
mean of SOURCE · mean of the same SOURCE            over seeds, with its interval; tested on other
texts each, or all on the same ones
pooled up to N of SOURCE                            sentences of all lengths up to N words together
SOURCE minus SOURCE · SOURCE minus SOURCE over 2    a difference, the half of it
SOURCE minus SOURCE apart                           with its interval: of samples that share nothing
ratio of SOURCE to SOURCE                           how many times as much
size of SOURCE                                      without its sign
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from leakscope.core.results import Interval, Score
from leakscope.core.results.rows import ResultTable
from leakscope.core.results.tables import rows_from_json
from leakscope.core.studies.inversion.reconstruct_tables import parse_length, pooled_score

ROOT = Path(__file__).resolve().parents[2]

_DIFFERENCE = re.compile(
    r'(?P<first>[^"]*) minus (?P<second>[^"]*?)(?: over (?P<parts>\d+)|(?P<apart> apart))?'
)
_RATIO = re.compile(r'ratio of (?P<first>[^"]*) to (?P<second>[^"]*)')
_SAME = "the same "
_NUMBER = re.compile(r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?")


@lru_cache(maxsize=64)
def _read_json(path: str) -> Any:
    """Read a JSON file of the repository by its path, cached."""
    try:
        return json.loads((ROOT / path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LookupError(f"there is no {path}") from error


@lru_cache(maxsize=64)
def _read_table(path: str) -> ResultTable:
    """Read a result file's rows by its path, cached: most figures are means of the same rows."""
    return rows_from_json(_read_json(path))


def score_of(source: str) -> Score:
    """Evaluate a figure's source expression to a score, with its interval if it has one.

    Raises
    ------
    LookupError
        No such file, row or entry, or several rows that differ.
    """
    difference = _DIFFERENCE.fullmatch(source)
    if difference and difference["apart"]:
        return _independent_difference(
            score_of(difference["first"]), score_of(difference["second"])
        )
    if difference:
        taken = score_of(difference["first"]).value - score_of(difference["second"]).value
        return Score(taken / float(difference["parts"] or 1))
    ratio = _RATIO.fullmatch(source)
    if ratio:
        return Score(score_of(ratio["first"]).value / score_of(ratio["second"]).value)
    kind, _, rest = source.partition(" ")
    if kind == "size":
        return Score(abs(score_of(rest.removeprefix("of ")).value))
    if kind in ("greatest", "least"):
        found = [_score(*each) for each in _matching_rows(rest.removeprefix("of "))]
        return (max if kind == "greatest" else min)(found, key=lambda score: score.value)
    if kind == "mean":
        return _mean_over_seeds(rest.removeprefix("of "))
    if kind == "pooled":
        return _pooled_over_lengths(rest.removeprefix("up to "))
    if kind == "file":
        path, _, entry = rest.partition(" ")
        return Score(float(_entry_at(_read_json(path), entry)))
    if kind == "bench":
        return Score(_benchmark_number(*shlex.split(rest)))
    found = list(dict.fromkeys(_score(*each) for each in _matching_rows(source)))
    if len(found) != 1:
        raise LookupError(f"{len(found)} different rows fit")
    return found[0]


def _independent_difference(first: Score, second: Score) -> Score:
    """Return the difference of two independent scores with its interval (Zou & Donner 2008)."""
    a, b = first.ci95, second.ci95
    value = first.value - second.value
    down = math.hypot(first.value - a.low, b.high - second.value)
    up = math.hypot(a.high - first.value, second.value - b.low)
    return Score(value, Interval(value - down, value + up))


def _entry_at(data: Any, path: str) -> Any:
    """Return the entry of nested JSON data at a dotted path."""
    for step in path.split("."):
        data = data[int(step)] if isinstance(data, list) else data[step]
    return data


def _matching_rows(source: str) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Read the rows that a source expression matches; yield each with the measure to read."""
    path, asked, measure = _parse_source(source)
    for row in _read_json(path)["rows"]:
        if _fits(row, asked):
            yield row, measure


def _fits(row: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    """Return whether a row has all the requested values, by name."""
    return all(str(_value_at(row, key)) == value for key, value in asked.items())


def _parse_source(source: str) -> tuple[str, dict[str, str], str]:
    """Split a source expression into its file, the row's conditions and the measure."""
    name, *words = shlex.split(source)
    asked = dict(word.split("=", 1) for word in words if "=" in word)
    measure = next((word for word in words if "=" not in word), "token_set_f1")
    return name if name.endswith(".json") else f"results/{name}.json", asked, measure


def _mean_over_seeds(source: str) -> Score:
    """Return the mean over seeds of the rows that a source expression matches."""
    is_same = source.startswith(_SAME)
    path, asked, measure = _parse_source(source.removeprefix(_SAME))
    rows = _read_table(path).where(lambda row: _fits(row, asked))
    if len(rows) < 2:
        raise LookupError(f"{len(rows)} rows fit, which is none to take a mean of")
    return rows.mean(measure, is_same_sample=is_same)


def _pooled_over_lengths(source: str) -> Score:
    """Pool the scores of all sentence lengths up to a limit that a source expression names."""
    most, _, rest = source.partition(" of ")
    path, asked, measure = _parse_source(rest)
    rows = [row for row in _read_table(path) if _fits(row, asked)]
    short = [row for row in rows if parse_length(row["length"])[1] <= int(most)]
    if len(short) < 2 or len({row["length"] for row in short}) < len(short):
        raise LookupError(f"{len(short)} rows fit, which are not one of each length")
    return pooled_score(short, measure)


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return a row's value at a dotted path; None if there is none."""
    found: Any = row
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _score(row: Mapping[str, Any], measure: str) -> Score:
    """Return a row's measure as a Score, with its interval if it has one."""
    found = _value_at(row, measure)
    if isinstance(found, Mapping):
        return Score.from_dict(found)
    if found is None:
        raise LookupError(f"the row has no {measure}")
    ends = row.get(f"{measure}_ci95")
    return Score(float(found), Interval(*ends)) if ends else Score(float(found))


def _benchmark_number(section: str, name: str, what: str = "value", nth: str = "") -> float:
    """Return a benchmark's value or goal, or the number `nth` in its note."""
    rows = [
        row for row in _read_json("benchmarks/results.json")[section]["rows"] if row["name"] == name
    ]
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} benchmarks are called {name!r}")
    if what != "note":
        return float(rows[0][what])
    return float(_NUMBER.findall(rows[0]["note"])[int(nth)].replace(",", ""))
