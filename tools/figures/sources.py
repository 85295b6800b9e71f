"""What a figure's source says: a row of a result file, a benchmark, or why no file has it.

inversion-bbc attack=msp auxiliary=cross            the F1 of that row of docs/results
names part=probing hits_1                           another of its scores
file assets/names/minilm.json rows.0.value          an entry of any JSON file
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
paper … · setting … · recorded …                    not rendered: of a paper, a setting, or
written down once, and no command repeats it
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

from core.results import Interval, Score
from core.studies.reconstruct_tables import ends_of, pooled
from core.studies.rows import mean_row_score
from core.studies.tables import rows_of

__all__ = ["KEPT", "ROOT", "render", "score_of"]

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("paper", "setting", "recorded")
"""What begins the source of a figure that stays as it stands."""

_DIFFERENCE = re.compile(
    r'(?P<first>[^"]*) minus (?P<second>[^"]*?)(?: over (?P<parts>\d+)|(?P<apart> apart))?'
)
_RATIO = re.compile(r'ratio of (?P<first>[^"]*) to (?P<second>[^"]*)')
_SAME = "the same "
_NUMBER = re.compile(r"[+−-]?\d+(?:,\d{3})*(?:\.\d+)?")


@lru_cache(maxsize=64)
def _read(path: str) -> Any:
    try:
        return json.loads((ROOT / path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LookupError(f"there is no {path}") from error


def score_of(source: str) -> Score:
    """Return the number of a source, with its interval where it has one.

    Raises
    ------
    LookupError
        No such file, row or entry, or several rows that differ.
    """
    difference = _DIFFERENCE.fullmatch(source)
    if difference and difference["apart"]:
        return _apart(score_of(difference["first"]), score_of(difference["second"]))
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
        found = [_score(*each) for each in _rows(rest.removeprefix("of "))]
        return (max if kind == "greatest" else min)(found, key=lambda score: score.value)
    if kind == "mean":
        return _mean(rest.removeprefix("of "))
    if kind == "pooled":
        return _pooled(rest.removeprefix("up to "))
    if kind == "file":
        path, _, entry = rest.partition(" ")
        return Score(float(_entry(_read(path), entry)))
    if kind == "bench":
        return Score(_benchmark(*shlex.split(rest)))
    found = list(dict.fromkeys(_score(*each) for each in _rows(source)))
    if len(found) != 1:
        raise LookupError(f"{len(found)} different rows fit")
    return found[0]


def _apart(first: Score, second: Score) -> Score:
    """Return the difference of independent scores with its interval (Zou & Donner 2008)."""
    a, b = first.ci95, second.ci95
    value = first.value - second.value
    down = math.hypot(first.value - a.low, b.high - second.value)
    up = math.hypot(a.high - first.value, second.value - b.low)
    return Score(value, Interval(value - down, value + up))


def _entry(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[int(step)] if isinstance(data, list) else data[step]
    return data


def _rows(source: str) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Yield the rows that a source fits, and the measure that it means."""
    path, asked, measure = _asked(source)
    for row in _read(path)["rows"]:
        if _fits(row, asked):
            yield row, measure


def _fits(row: Mapping[str, Any], asked: Mapping[str, str]) -> bool:
    return all(str(_inner(row, key)) == value for key, value in asked.items())


def _asked(source: str) -> tuple[str, dict[str, str], str]:
    """Return the file, what its rows have to say, and the measure."""
    name, *words = shlex.split(source)
    asked = dict(word.split("=", 1) for word in words if "=" in word)
    measure = next((word for word in words if "=" not in word), "token_set_f1")
    return name if name.endswith(".json") else f"docs/results/{name}.json", asked, measure


def _mean(source: str) -> Score:
    """Return a mean as the tables of studies have it."""
    is_same = source.startswith(_SAME)
    path, asked, measure = _asked(source.removeprefix(_SAME))
    rows = [row for row in rows_of(_read(path)) if _fits(row, asked)]
    if len(rows) < 2:
        raise LookupError(f"{len(rows)} rows fit, which is none to take a mean of")
    return mean_row_score(rows, measure, is_same_sample=is_same)


def _pooled(source: str) -> Score:
    """Return what the table of sentences says of all lengths up to so many words together."""
    most, _, rest = source.partition(" of ")
    path, asked, measure = _asked(rest)
    rows = [row for row in rows_of(_read(path)) if _fits(row, asked)]
    short = [row for row in rows if ends_of(row["length"])[1] <= int(most)]
    if len(short) < 2 or len({row["length"] for row in short}) < len(short):
        raise LookupError(f"{len(short)} rows fit, which are not one of each length")
    return pooled(short, measure)


def _inner(row: Mapping[str, Any], path: str) -> Any:
    found: Any = row
    for step in path.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _score(row: Mapping[str, Any], measure: str) -> Score:
    found = _inner(row, measure)
    if isinstance(found, Mapping):
        return Score.from_dict(found)
    if found is None:
        raise LookupError(f"the row has no {measure}")
    ends = row.get(f"{measure}_ci95")
    return Score(float(found), Interval(*ends)) if ends else Score(float(found))


def _benchmark(section: str, name: str, what: str = "value", nth: str = "") -> float:
    rows = [row for row in _read("benchmarks/results.json")[section]["rows"]
            if row["name"] == name]  # fmt: skip
    if len(rows) != 1:
        raise LookupError(f"{len(rows)} benchmarks are called {name!r}")
    if what != "note":
        return float(rows[0][what])
    return float(_NUMBER.findall(rows[0]["note"])[int(nth)].replace(",", ""))


def render(source: str, stands: str) -> str:
    """Return a figure as its source has it, with as many decimals and as bold as it stands.

    Raises
    ------
    LookupError, ValueError
        No such source, it says too little or too much, what it names is no number, or it has no
        interval where one stands.
    """
    if source.partition(" ")[0] in KEPT:
        return stands
    try:
        score = score_of(source)
    except TypeError as error:
        raise LookupError(f"it names no number, or has too few words or many: {error}") from error
    numbers = _NUMBER.findall(stands)
    values = [score.value]
    if "[" in stands:
        if not score.has_interval:
            raise LookupError("it has no interval")
        values += [score.ci95.low, score.ci95.high]
    new = iter([_said(value, old) for value, old in zip(values, numbers, strict=True)])
    return _NUMBER.sub(lambda _: next(new), stands)


def _said(value: float, stands: str) -> str:
    decimals = len(stands.partition(".")[2])
    rounded = round(value, decimals) + 0.0  # of −0.0, 0.0
    told = f"{abs(rounded):,.{decimals}f}"
    if rounded < 0:
        return f"{'-' if stands.startswith('-') else '−'}{told}"
    return f"+{told}" if stands.startswith("+") else told
