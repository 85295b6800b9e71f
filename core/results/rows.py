"""Result rows of studies, and `ResultTable`: rows to filter, group and average."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leakscope.core.errors import InvalidInputError
from leakscope.core.results import NO_INTERVAL, Interval, Score
from leakscope.core.results.provenance import Provenance

Cell = dict[str, Any]
"""What a measurement depends on; JSON-able."""

CHANCE = {"token_set_f1": "prior_f1", "macro_f1": "prior_macro_f1"}
"""The names of chance levels in files; for other measures, `MEASURE_chance`."""

MEASURES = (
    "precision",
    "recall",
    "weighted_f1",
    "own_vocabulary_f1",
    "unrestricted_f1",
)
"""Numbers in files that are scores although they have no interval."""

_DERIVED = {"error", "cell_seconds", *CHANCE.values()}
"""Names in the flat form that are neither cell entry, fact nor measure."""

_FLAT = {"value", "ci95", "n", "chance"}
"""What the flat form of a score can hold; other scores are written as objects."""


@dataclass(frozen=True)
class Row(Mapping[str, Any]):
    """The result of one cell of a study, or of a part of it: scores, facts and provenance.

    As a mapping it is the flat form that files have: the entries of the cell, the facts, and each
    score by its measure (`token_set_f1`, `token_set_f1_ci95`, …).

    Attributes
    ----------
    cell : dict
        What the measurement depends on; filled in by the runner.
    scores : dict
        Measure to Score.
    facts : dict
        Other results that are no scores, such as how many texts an attack was fitted on.
    seconds : float or None
        Duration of the whole cell; None if unknown.
    error : str
        Why the cell could not be measured; then there are no scores.
    provenance : Provenance or None
        When and where it was measured, by which version; None if unknown. Rows that differ only in
        it are equal, and the flat form lacks it: `tables.rows_to_json` writes it.
    """

    cell: Cell = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    error: str = ""
    provenance: Provenance | None = field(default=None, compare=False)

    def format(self, measure: str, decimals: int = 1, *, is_bold: bool = False) -> str:
        """Format the row's score of a measure with its interval, clipped to its range; else ""."""
        score = self.scores.get(measure)
        if score is None:
            return ""
        return _clip_interval(score, *_range_of(measure, [score])).format(decimals, is_bold=is_bold)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as one flat, JSON-able dictionary: cell, facts, scores, error, seconds."""
        flat = {**self.cell, **self.facts}
        shared = self.facts.get("n")
        for measure, score in self.scores.items():
            stored = score.to_dict()
            is_told = score.has_interval or measure in MEASURES
            if score.n != shared or not is_told or not stored.keys() <= _FLAT:
                flat[measure] = stored
                continue
            flat[measure] = stored["value"]
            if "ci95" in stored:
                flat[f"{measure}_ci95"] = stored["ci95"]
            if "chance" in stored:
                flat[CHANCE.get(measure, f"{measure}_chance")] = stored["chance"]
        if self.error:
            flat["error"] = self.error
        elif self.seconds is not None:
            flat["cell_seconds"] = self.seconds
        return flat

    def tidy(self) -> list[dict[str, Any]]:
        """Return one record per score, with cell and facts; of a failed row, one with the error."""
        head = {**self.cell, **self.facts}
        if self.error:
            return [{**head, "error": self.error}]
        return [
            {
                **head,
                "measure": measure,
                "value": score.value,
                "low": score.ci95.low,
                "high": score.ci95.high,
                "chance": score.chance,
                "n": score.n,
            }
            for measure, score in self.scores.items()
        ]

    @classmethod
    def from_dict(cls, flat: Mapping[str, Any], cell: Cell | None = None) -> Row:
        """Restore a row from its flat dictionary.

        Parameters
        ----------
        cell : dict, optional
            The part that is the cell, if known; else all entries that are no scores count
            as facts.
        """
        left = {name: value for name, value in flat.items() if name not in (cell or {})}
        error, seconds = str(left.pop("error", "")), left.pop("cell_seconds", None)
        scores: dict[str, Score] = {}
        for name in [*left]:
            score = _parse_score(left, name)
            if score is not None:
                scores[name] = score
        for name in scores:
            taken = (name, f"{name}_ci95", CHANCE.get(name, ""), f"{name}_chance")
            left = {key: value for key, value in left.items() if key not in taken}
        return cls(dict(cell or {}), scores, left, seconds, error)

    def __getitem__(self, name: str) -> Any:
        """Return an entry of the flat dictionary by name: a fact, cell entry or part of a score."""
        for known in (self.facts, self.cell):
            if name in known:
                return known[name]
        if name not in self:
            raise KeyError(name)
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        """Return whether the flat dictionary of `to_dict` has an entry of this name."""
        if name in self.scores or name in self.facts or name in self.cell:
            return True
        is_derived = isinstance(name, str) and (
            name in _DERIVED or name.endswith(("_ci95", "_chance"))
        )
        return is_derived and name in self.to_dict()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the flat dictionary."""
        return iter(self.to_dict())

    def __len__(self) -> int:
        """Return the number of entries of the flat dictionary."""
        return len(self.to_dict())


def _parse_score(flat: Mapping[str, Any], name: str) -> Score | None:
    """Parse the score stored under a name of a flat row; None if the entry is no score."""
    value = flat[name]
    if isinstance(value, Mapping) and {"value", "n"} <= value.keys():
        return Score.from_dict(value)
    if f"{name}_ci95" not in flat and name not in MEASURES:
        return None
    ends = flat.get(f"{name}_ci95")
    interval = NO_INTERVAL
    if ends is not None:
        low, high = map(_parse_number, ends)
        interval = Interval(low, high)
    chance = flat.get(CHANCE.get(name, f"{name}_chance"), math.nan)
    return Score(_parse_number(value), interval, int(flat["n"]), _parse_number(chance))


def _parse_number(value: Any) -> float:
    """Convert a number read from a file to float; None becomes NaN."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


_ENDS = (
    (re.compile(r"((control|null|blind)_)?auc|tpr_at_.*|top\d(_rest|_topic)?"), (0.0, 1.0)),
    (re.compile(r"advantage|(auc|level|top\d(_topic)?)_gain|top\d_lost"), (-1.0, 1.0)),
    (re.compile(r"top\d_ratio"), (0.0, math.inf)),
    (
        re.compile(
            r"\w+_f1|rouge_l|bleu_\d|token_inversion|(precision|recall)(@1)?|exact|hits_\d"
            r"|membership_auc|attribute_top\d"
        ),
        (0.0, 100.0),
    ),
    (re.compile(r"kendall_tau|spearman"), (-100.0, 100.0)),
)
"""Patterns of measures, each with the lowest and highest possible value."""

_ACCURACY = re.compile(r"(\w+_)?accuracy")
"""Membership attacks state accuracy as a share of 1, tasks in per cent."""


def _range_of(measure: str, scores: Sequence[Score]) -> tuple[float, float]:
    """Return the lowest and highest possible value of a measure, such as 0 and 1 for an AUC."""
    kind = measure.partition(": ")[0]
    if _ACCURACY.fullmatch(kind):
        return 0.0, 1.0 if all(score.value <= 1 for score in scores) else 100.0
    return next((ends for named, ends in _ENDS if named.fullmatch(kind)), (-math.inf, math.inf))


def _clip_interval(score: Score, least: float, most: float) -> Score:
    """Clip a score's interval to a range; the interval of a mean over draws can exceed it."""
    if not score.has_interval:
        return score
    ends = Interval(max(least, score.ci95.low), min(most, score.ci95.high))
    return replace(score, ci95=ends)


class ResultTable(list[Row]):
    """The rows of a study, to filter, group and average.

    Entries are looked up as in a row: in its facts, its cell and the flat form of its scores. They
    may be of any type, None and lists among them, so that rows become a frame of pandas only where
    they are written (`write_rows`).

    Examples
    --------
    >>> table = ResultTable(
    ...     Row({"attack": name, "seed": seed}, {"f1": Score(value, n=9)})
    ...     for name, seed, value in (("mlc", 0, 40.0), ("msp", 0, 50.0), ("mlc", 1, 44.0))
    ... )
    >>> {key: own.mean("f1").value for key, own in table.group_by("attack").items()}
    {('mlc',): 42.0, ('msp',): 50.0}
    >>> table.where(attack="mlc").column("seed")
    [0, 1]
    """

    @property
    def measured(self) -> ResultTable:
        """The rows of cells that could be measured, as a new table."""
        return ResultTable(row for row in self if not row.error)

    @property
    def failed(self) -> ResultTable:
        """The rows of cells that could not be measured, as a new table."""
        return ResultTable(row for row in self if row.error)

    @property
    def provenances(self) -> tuple[Provenance | None, ...]:
        """The provenance of each row."""
        return tuple(row.provenance for row in self)

    def where(
        self, chosen: Callable[[Row], object] | None = None, /, **entries: Any
    ) -> ResultTable:
        """Return the rows with these entries for which `chosen(row)` is true, as a new table."""
        return ResultTable(
            row
            for row in self
            if all(row[name] == value for name, value in entries.items())
            and (chosen is None or chosen(row))
        )

    def having(self, measure: str) -> ResultTable:
        """Return the rows that contain a score of this measure, as a new table."""
        return self.where(lambda row: measure in row.scores)

    def group_by(self, *names: str | Callable[[Row], Any]) -> dict[tuple[Any, ...], ResultTable]:
        """Group the rows by entries or functions of a row: a table by key, in order of occurrence.

        Parameters
        ----------
        *names : str or function
            Names of entries, or functions that compute a key from a row.
        """
        found: dict[tuple[Any, ...], ResultTable] = {}
        for row in self:
            key = tuple(row[name] if isinstance(name, str) else name(row) for name in names)
            found.setdefault(key, ResultTable()).append(row)
        return found

    def column(self, name: str) -> list[Any]:
        """Return an entry's value in every row as a list."""
        return [row[name] for row in self]

    def distinct(self, name: str) -> list[Any]:
        """Return an entry's distinct values over all rows, in order of first occurrence."""
        return list(dict.fromkeys(self.column(name)))

    def values(self, measure: str) -> list[float]:
        """Return the value of a measure's score in every row as a list."""
        return [row.scores[measure].value for row in self]

    def average(self, name: str) -> float:
        """Return the mean of a numeric entry over all rows."""
        return sum(map(float, self.column(name))) / len(self)

    def mean(self, measure: str, *, is_same_sample: bool = False) -> Score:
        """Return a measure's mean score over rows that differ only in their seed, with interval.

        `is_same_sample` says that all were tested on the same texts; see `mean_over_seeds`. The
        interval is cut where the score can go no further. Rows without the score do not count.

        Raises
        ------
        InvalidInputError
            No row has it.
        """
        from leakscope.core.metrics import mean_over_seeds

        scores = [row.scores[measure] for row in self if measure in row.scores]
        if not scores:
            raise InvalidInputError(f"No row contains {measure}.")
        mean = mean_over_seeds(scores, is_same_sample=is_same_sample)
        return _clip_interval(mean, *_range_of(measure, scores))

    def mean_on_same_texts(self, measure: str) -> Score:
        """Return a measure's mean score over seeds that were all tested on the same texts."""
        return self.mean(measure, is_same_sample=True)
