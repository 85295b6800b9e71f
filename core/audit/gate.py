"""The gate of a build: thresholds on what an audit measured, and whether it got worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from core.errors import InvalidInputError
from core.results import Score


class Outcome(Enum):
    """What a check came to."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Check:
    """One threshold, and whether what was measured keeps to it.

    Attributes
    ----------
    name : str
        Of the threshold, such as `max-f1`.
    outcome : Outcome
    message : str
        Value, interval, limit and n, in one sentence. It quotes no text.
    """

    name: str
    outcome: Outcome
    message: str


def check_limit(name: str, measured: Score | None, limit: float, what: str) -> Check:
    """Compare the lower end of an interval with the most that is allowed.

    A leak is reported where the whole interval lies above the limit, so that chance alone seldom
    fails a build. An interval around the limit passes, and the message says so.

    Parameters
    ----------
    measured : Score or None
        In per cent; None where it could not be measured.
    limit : float
        In per cent.
    what : str
        How the message calls what was measured.

    Examples
    --------
    >>> from core.results import Interval
    >>> check_limit("max-f1", Score(40.0, Interval(35, 45), 200), 30, "F1").outcome.value
    'failed'
    >>> print(check_limit("max-f1", Score(32.0, Interval(27, 37), 200), 30, "F1").message)
    F1 is 32.0 [27.0, 37.0], n 200; at most 30 is allowed. The interval includes the limit: more vectors would decide.
    """  # noqa: E501 - the message is one line
    if measured is None or math.isnan(measured.value):
        return Check(name, Outcome.NOT_MEASURED, f"{what} could not be measured.")
    told = f"{what} is {measured.said(with_n=True)}; at most {limit:g} is allowed"
    if not measured.has_interval:
        message = f"{told}. The sample is too small for an interval."
        return Check(name, Outcome.NOT_MEASURED, message)
    if measured.ci95.low > limit:
        message = f"{told}. Even the lower end of the interval is above it."
        return Check(name, Outcome.FAILED, message)
    if measured.ci95.high > limit:
        message = f"{told}. The interval includes the limit: more vectors would decide."
        return Check(name, Outcome.PASSED, message)
    return Check(name, Outcome.PASSED, f"{told}.")


def check_baseline(
    rows: Mapping[str, float], before: Mapping[str, float], *, seed: int = 0
) -> Check:
    """Compare F1 with that of an earlier audit, and fail where it is significantly higher.

    Rows that both audits attacked are compared in pairs; with fewer than 30 of them the two samples
    are compared as independent ones. The interval is the percentile bootstrap's, 10,000 draws.

    Parameters
    ----------
    rows, before : mapping of str to float
        The F1 of each row in [0, 1], by a digest of its name: now and then.
    seed : int
        Of the bootstrap.
    """
    name = "baseline"
    if len(rows) < 2 or len(before) < 2:
        return Check(
            name, Outcome.NOT_MEASURED, "One of the two audits measured fewer than 2 rows."
        )
    rng = np.random.default_rng(seed)
    shared = sorted(rows.keys() & before.keys())
    if len(shared) >= _LEAST_PAIRS:
        change = 100 * np.array([rows[row] - before[row] for row in shared])
        value, means = change.mean(), _means(change, rng)
        of = f"{len(shared):,} rows that both audits attacked"
    else:
        now, then = 100 * np.array(list(rows.values())), 100 * np.array(list(before.values()))
        value, means = now.mean() - then.mean(), _means(now, rng) - _means(then, rng)
        of = f"samples of {len(now):,} rows now and {len(then):,} before"
    low, high = np.percentile(means, [2.5, 97.5])
    told = f"F1 changed by {value:+.1f} [{low:+.1f}, {high:+.1f}] points since the baseline ({of})"
    if low > 0:
        return Check(name, Outcome.FAILED, f"{told}: significantly worse.")
    verdict = "significantly better" if high < 0 else "not significantly different"
    return Check(name, Outcome.PASSED, f"{told}: {verdict}.")


_LEAST_PAIRS = 30
_DRAWS = 10_000


def _means(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the means of bootstrap samples."""
    n = len(values)
    part = max(1, 20_000_000 // n)
    drawn = [
        values[rng.integers(0, n, (min(part, _DRAWS - start), n))].mean(axis=1)
        for start in range(0, _DRAWS, part)
    ]
    return np.concatenate(drawn)


def exit_status(checks: list[Check]) -> int:
    """Return 0 where all passed, 1 where one failed, else 2: something could not be measured."""
    outcomes = {check.outcome for check in checks}
    if Outcome.FAILED in outcomes:
        return 1
    return 2 if Outcome.NOT_MEASURED in outcomes else 0


def rows_of(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the F1 of each row that a report holds.

    Raises
    ------
    InvalidInputError
        It is no report of an audit.
    """
    rows = report.get("f1_by_row")
    if not isinstance(rows, dict) or not all(
        isinstance(value, int | float) and 0 <= value <= 1 for value in rows.values()
    ):
        raise InvalidInputError(
            "--baseline: the file is no report of an audit: it has no `f1_by_row`. Give what "
            "`audit --json` wrote."
        )
    return {str(row): float(value) for row, value in rows.items()}
