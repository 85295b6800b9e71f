"""Rows of studies: what was measured of a cell, read and said the same way everywhere."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import InvalidInputError
from core.results import NO_INTERVAL, Interval, Score
from core.studies.provenance import Provenance

__all__ = ["CHANCE", "Cell", "Row", "failures", "mean_row_score"]

Cell = dict[str, Any]
"""What a measurement depends on; JSON-able."""

CHANCE = {"token_set_f1": "prior_f1", "macro_f1": "prior_macro_f1"}
"""Under which name files hold what guessing reaches; of other measures, `MEASURE_chance`."""

MEASURES = (
    "precision",
    "recall",
    "weighted_f1",
    "own_vocabulary_f1",
    "unrestricted_f1",
)
"""Numbers of files that are scores, though they have no interval."""

_FLAT = {"value", "ci95", "n", "chance"}
"""What the flat form of a score can hold; others are written as objects."""


@dataclass(frozen=True)
class Row(Mapping[str, Any]):
    """What came of a cell, or of a part of it.

    As a mapping it is the flat form that files have: the entries of the cell, the facts, and each
    score by its measure (`token_set_f1`, `token_set_f1_ci95`, …).

    Attributes
    ----------
    cell : dict
        What the measurement depends on; filled in by the runner.
    scores : dict
        Measure to Score.
    facts : dict
        What else was found and is no score, such as how many texts an attack was fitted on.
    seconds : float or None
        Of the whole cell; None where it is not known.
    error : str
        Why the cell could not be measured; then there are no scores.
    provenance : Provenance or None
        When it was measured, by what and where; None where it is not known. Rows that differ in it
        alone are equal, and the flat form is without it: `tables.table_of` writes it.
    """

    cell: Cell = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    error: str = ""
    provenance: Provenance | None = field(default=None, compare=False)

    def said(self, measure: str, decimals: int = 1, *, is_bold: bool = False) -> str:
        """Return a score in a few characters, or nothing where the row has none."""
        score = self.scores.get(measure)
        if score is None:
            return ""
        return _bounded(score, *_ends(measure, [score])).said(decimals, is_bold=is_bold)

    def to_dict(self) -> dict[str, Any]:
        """Return the flat, JSON-able form."""
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
        """Return a record a score: cell, facts, measure, value, low, high, chance and n."""
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
        """Restore a row from its flat form, today's or that of earlier versions.

        Parameters
        ----------
        cell : dict, optional
            What of it is the cell, where that is known; else all entries that are no scores count
            as facts.
        """
        left = {name: value for name, value in flat.items() if name not in (cell or {})}
        error, seconds = str(left.pop("error", "")), left.pop("cell_seconds", None)
        scores: dict[str, Score] = {}
        for name in [*left]:
            score = _score_of(left, name)
            if score is not None:
                scores[name] = score
        for name in scores:
            taken = (name, f"{name}_ci95", CHANCE.get(name, ""), f"{name}_chance")
            left = {key: value for key, value in left.items() if key not in taken}
        return cls(dict(cell or {}), scores, left, seconds, error)

    def __getitem__(self, name: str) -> Any:
        """Return an entry of the flat form."""
        known = self.facts if name in self.facts else self.cell
        return known[name] if name in known else self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the flat form."""
        return iter(self.to_dict())

    def __len__(self) -> int:
        """Return the number of entries of the flat form."""
        return len(self.to_dict())


def _score_of(flat: Mapping[str, Any], name: str) -> Score | None:
    """Return the score that stands under a name of a flat row; None where it is no score."""
    value = flat[name]
    if isinstance(value, Mapping) and {"value", "n"} <= value.keys():
        return Score.from_dict(value)
    if f"{name}_ci95" not in flat and name not in MEASURES:
        return None
    ends = flat.get(f"{name}_ci95")
    interval = NO_INTERVAL
    if ends is not None:
        low, high = map(_number, ends)
        interval = Interval(low, high)
    chance = flat.get(CHANCE.get(name, f"{name}_chance"), math.nan)
    return Score(_number(value), interval, int(flat["n"]), _number(chance))


def _number(value: Any) -> float:
    """Return a number of a file; None stands for NaN."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def failures(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of cells that could not be measured."""
    return [row for row in rows if row.error]


_ENDS = (
    (re.compile(r"((control|null|blind)_)?auc|tpr_at_.*|top\d(_rest|_topic)?"), (0.0, 1.0)),
    (re.compile(r"advantage|(auc|level|top\d(_topic)?)_gain|top\d_lost"), (-1.0, 1.0)),
    (re.compile(r"top\d_ratio"), (0.0, math.inf)),
    (re.compile(r"\w+_f1|rouge_l|bleu_\d|token_inversion|(precision|recall)(@1)?|exact|hits_\d"
                r"|membership_auc|attribute_top\d"), (0.0, 100.0)),
    (re.compile(r"kendall_tau|spearman"), (-100.0, 100.0)),
)  # fmt: skip
"""Measures, and what they are at least and at most."""

_ACCURACY = re.compile(r"(\w+_)?accuracy")
"""Attacks on members tell it as a share, tasks in per cent."""


def _ends(measure: str, scores: Sequence[Score]) -> tuple[float, float]:
    """Return what a measure is at least and at most."""
    kind = measure.partition(": ")[0]
    if _ACCURACY.fullmatch(kind):
        return 0.0, 1.0 if all(score.value <= 1 for score in scores) else 100.0
    return next((ends for named, ends in _ENDS if named.fullmatch(kind)), (-math.inf, math.inf))


def _bounded(score: Score, least: float, most: float) -> Score:
    """Return a score with its interval cut: that of a mean over draws knows no bounds."""
    if not score.has_interval:
        return score
    ends = Interval(max(least, score.ci95.low), min(most, score.ci95.high))
    return replace(score, ci95=ends)


def mean_row_score(rows: Sequence[Row], measure: str, *, is_same_sample: bool = False) -> Score:
    """Return the mean of a score over rows that differ in their seed alone.

    `is_same_sample` says that all were tested on the same texts; see `mean_over_seeds`. The
    interval is cut where the score can go no further.

    Raises
    ------
    InvalidInputError
        No row has it.
    """
    from core.metrics import mean_over_seeds

    scores = [row.scores[measure] for row in rows if measure in row.scores]
    if not scores:
        raise InvalidInputError(f"No row holds {measure}.")
    mean = mean_over_seeds(scores, is_same_sample=is_same_sample)
    return _bounded(mean, *_ends(measure, scores))
