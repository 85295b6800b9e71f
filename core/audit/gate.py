"""The gate of a build: thresholds on what an audit measured, and whether it got worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np

from core.audit.leakage import Recovered
from core.errors import InvalidInputError
from core.results import Interval, Score


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


def check_limit(
    name: str, measured: Score | None, limit: float, what: str, *, is_estimate: bool = False
) -> Check:
    """Compare the lower end of an interval with the most that is allowed.

    A leak is reported where the whole interval lies above the limit, so that chance alone seldom
    fails a build. An interval around the limit passes, and the message says so; of an estimate,
    which was not measured on these vectors, it decides nothing.

    Parameters
    ----------
    measured : Score or None
        In per cent; None where it could not be measured.
    limit : float
        In per cent.
    what : str
        How the message calls what was measured.
    is_estimate : bool
        Whether no text was known.

    Examples
    --------
    >>> from core.results import Interval
    >>> check_limit("max-f1", Score(40.0, Interval(35, 45), 200), 30, "F1").outcome.value
    'failed'
    >>> print(check_limit("max-f1", Score(20.0, Interval(15, 25), 200), 30, "F1").message)
    F1 is 20.0 [15.0, 25.0], n 200; at most 30 is allowed.
    """
    if measured is None or math.isnan(measured.value):
        return Check(name, Outcome.NOT_MEASURED, f"{what} could not be measured.")
    told = f"{what} is {measured.said(with_n=True)}; at most {limit:g} is allowed"
    if is_estimate:
        told += ". It is an estimate, since no text is known"
    if not measured.ci95.is_known:
        message = f"{told}. The sample is too small for an interval."
        return Check(name, Outcome.NOT_MEASURED, message)
    if measured.ci95.low > limit:
        message = f"{told}. Even the lower end of the interval is above it."
        return Check(name, Outcome.FAILED, message)
    if measured.ci95.high <= limit:
        return Check(name, Outcome.PASSED, f"{told}.")
    if is_estimate:
        message = f"{told}. The interval includes the limit: give the texts to decide."
        return Check(name, Outcome.NOT_MEASURED, message)
    message = f"{told}. The interval includes the limit: a larger sample could decide."
    return Check(name, Outcome.PASSED, message)


def check_share(kind: str, part: Recovered | None, limit: float) -> Check:
    """Compare the share of names or numbers that is recovered with the most that is allowed.

    Only words on the attack's word list can be recovered. Where fewer than half are on it, a share
    below the limit is no pass.
    """
    name = f"max-recovered-{kind}"
    if part is None:
        return check_limit(name, None, limit, f"The share of {kind} that is recovered")
    what = (
        f"Of {part.n_listed:,} {kind} on the word list ({part.n_all:,} in all), the share recovered"
    )
    check = check_limit(name, part.share, limit, what)
    if check.outcome is Outcome.PASSED and 2 * part.n_listed < part.n_all:
        message = f"{check.message} Most {kind} are not on the list: untested."
        return Check(name, Outcome.NOT_MEASURED, message)
    return check


@dataclass(frozen=True)
class Measured:
    """What an audit measured, as far as a later one can be compared with it.

    Attributes
    ----------
    attacker, encoder : str
    rows : mapping of str to float
        The F1 of each row in [0, 1], by a digest of its name; empty where it was estimated.
    """

    attacker: str
    encoder: str
    rows: Mapping[str, float]

    @classmethod
    def of_report(cls, report: Any) -> Self:
        """Return what a report holds.

        Raises
        ------
        InvalidInputError
            It is no report of an audit.
        """
        try:
            rows = report["f1_by_row"] or {}
            found = {str(row): float(value) for row, value in rows.items()}
            if not all(0 <= value <= 1 for value in found.values()):
                raise ValueError("no F1")
            return cls(str(report.get("attacker", "")), str(report["encoder"]), found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                "--baseline: the file is no report of an audit. Give what `audit --json` wrote."
            ) from error


def check_baseline(now: Measured, before: Measured, *, seed: int = 0) -> Check:
    """Compare F1 with that of an earlier audit, and fail where it is significantly higher.

    Rows that both audits attacked are compared in pairs; with fewer than 30 of them the two samples
    are compared as independent ones. The interval is the percentile bootstrap's, 10,000 draws.

    Parameters
    ----------
    now, before : Measured
        By the same attacker on vectors of the same encoder; else nothing is compared.
    seed : int
        Of the bootstrap.
    """
    name = "baseline"
    if min(len(now.rows), len(before.rows)) < 2:
        message = "One of the two audits measured fewer than 2 rows: an estimate is no measurement."
        return Check(name, Outcome.NOT_MEASURED, message)
    for what in ("attacker", "encoder"):
        one, other = getattr(now, what), getattr(before, what)
        if one != other:
            message = (
                f"The {what} is {one} now and was {other} before: their F1 cannot be compared."
            )
            return Check(name, Outcome.NOT_MEASURED, message)
    rng = np.random.default_rng(seed)
    shared = sorted(now.rows.keys() & before.rows.keys())
    if len(shared) >= _LEAST_PAIRS:
        change = 100 * np.array([now.rows[row] - before.rows[row] for row in shared])
        value, means = change.mean(), _means(change, rng)
        of = f"{len(shared):,} rows that both audits attacked"
    else:
        one, two = (100 * np.array(list(found.rows.values())) for found in (now, before))
        value, means = one.mean() - two.mean(), _means(one, rng) - _means(two, rng)
        of = f"samples of {len(one):,} rows now and {len(two):,} before"
    low, high = map(float, np.percentile(means, [2.5, 97.5]))
    change_of = Score(float(value), Interval(low, high), 0).said()
    told = f"F1 now less F1 of the baseline is {change_of} points ({of})"
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
