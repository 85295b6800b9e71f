"""The build gate: checks of an audit against thresholds and a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from leakscope.core.audit.leakage import Recovered
from leakscope.core.errors import InvalidInputError
from leakscope.core.results import Interval, Score
from leakscope.core.storage.artifacts import UNFIT

if TYPE_CHECKING:
    from leakscope.core.audit.personal.report import KindSummary


class Outcome(Enum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Check:
    """One threshold and whether the measured value meets it.

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

    def to_dict(self) -> dict[str, str]:
        """Return the name, outcome and message as a JSON-able dict."""
        return {"name": self.name, "outcome": self.outcome.value, "message": self.message}


def check_limit(
    name: str, measured: Score | None, limit: float, what: str, *, is_estimate: bool = False
) -> Check:
    """Check that a score does not significantly exceed a limit; return the outcome and a message.

    The check fails only if the whole interval is above the limit, so that chance alone seldom
    fails a build. If the interval includes the limit, the check passes and the message says so; for
    an estimate, which was not measured on these vectors, the check is not measured.

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
    >>> from leakscope.core.results import Interval
    >>> check_limit("max-f1", Score(40.0, Interval(35, 45), 200), 30, "F1").outcome.value
    'failed'
    >>> print(check_limit("max-f1", Score(20.0, Interval(15, 25), 200), 30, "F1").message)
    F1 is 20.0 (95 % CI 15.0–25.0), n = 200; at most 30 is allowed.
    """
    if measured is None or math.isnan(measured.value):
        return Check(name, Outcome.NOT_MEASURED, f"{what} could not be measured.")
    summary = f"{what} is {measured.in_text()}, n = {measured.n:,}; at most {limit:g} is allowed"
    if is_estimate:
        summary += ". It is an estimate, since no text is known"
    if not measured.ci95.is_known:
        message = f"{summary}. The sample is too small for an interval."
        return Check(name, Outcome.NOT_MEASURED, message)
    if measured.ci95.low > limit:
        message = f"{summary}. The whole interval is above the limit."
        return Check(name, Outcome.FAILED, message)
    if measured.ci95.high <= limit:
        return Check(name, Outcome.PASSED, f"{summary}.")
    if is_estimate:
        message = f"{summary}. The interval includes the limit: give the texts to decide."
        return Check(name, Outcome.NOT_MEASURED, message)
    message = f"{summary}. The interval includes the limit: a larger sample could decide."
    return Check(name, Outcome.PASSED, message)


def check_share(kind: str, part: Recovered | None, limit: float) -> Check:
    """Check that the recovered share of names or numbers does not exceed a limit; return a Check.

    Only words in the attack's vocabulary can be recovered. If fewer than half are in it, a share
    below the limit does not pass.
    """
    name = f"max-recovered-{kind}"
    if part is None:
        return check_limit(name, None, limit, f"The share of recovered {kind}")
    what = (
        f"The share of recovered {kind} ({part.n_listed:,} of {part.n_all:,} are in the vocabulary)"
    )
    check = check_limit(name, part.share, limit, what)
    if 2 * part.n_listed < part.n_all:
        return not_passed(check, f"Most {kind} are not in the vocabulary: untested.")
    return check


def check_words(
    f1: Score | None,
    recovered: Mapping[str, Recovered],
    limits: Mapping[str, float],
    *,
    is_estimate: bool = False,
) -> list[Check]:
    """Check F1 and the recovered shares of names and numbers; return one Check per limit set.

    Parameters
    ----------
    limits : mapping of str to float
        By `f1`, `names` and `numbers`, in per cent; each is checked.
    """
    checks = []
    if "f1" in limits:
        checks.append(check_limit("max-f1", f1, limits["f1"], "F1", is_estimate=is_estimate))
    kinds = [kind for kind in limits if kind != "f1"]
    return checks + [check_share(kind, recovered.get(kind), limits[kind]) for kind in kinds]


UNKNOWN_CHANGE = "The attack does not know how the vectors were changed, so no check passes."


def not_passed(check: Check, reason: str) -> Check:
    """Return a passed check as not measured, with a reason; return any other check unchanged."""
    if check.outcome is not Outcome.PASSED:
        return check
    return Check(check.name, Outcome.NOT_MEASURED, f"{check.message} {reason}")


def check_confirmable(kind: str, found: KindSummary | None, limit: float) -> Check:
    """Check that the share of one kind of personal data that leaks does not exceed a limit.

    Where none of the kind was found, or most of it could not be tested, nothing passes: rules miss
    what is written in other ways.
    """
    name, what = f"max-confirmable-{kind}", f"The share of recovered or confirmed {kind}"
    if found is None:
        return Check(
            name,
            Outcome.NOT_MEASURED,
            f"The rules found no {kind} in the sampled texts, but they may miss some.",
        )
    check = check_limit(name, found.learned, limit, what)
    untested = found.not_testable.value
    if untested > 50:
        return not_passed(check, f"{untested:.0f} % could not be tested.")
    if math.isnan(found.recovered.value):
        return not_passed(check, "Recovery word by word was not tested.")
    return check


@dataclass(frozen=True)
class Measured:
    """The F1 by row of an audit, for comparison with another audit.

    Attributes
    ----------
    attacker, encoder : str
    rows : mapping of str to float
        The F1 of each row in [0, 1], by a digest of its name; empty where it was estimated.
    same_text : mapping of str to str
        Of rows whose text is that of an earlier row, the digest of that row.
    """

    attacker: str
    encoder: str
    rows: Mapping[str, float]
    same_text: Mapping[str, str] = field(default_factory=dict)

    def units(self, rows: Sequence[str]) -> np.ndarray:
        """Return an index for each row, the same for rows with the same text."""
        first = [self.same_text.get(row, row) for row in rows]
        return np.unique(first, return_inverse=True)[1]

    @classmethod
    def of_report(cls, report: Any) -> Self:
        """Read the attacker, encoder and F1 by row from an audit report's parsed JSON.

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
            copies = {str(a): str(b) for a, b in (report.get("same_text") or {}).items()}
            return cls(str(report.get("attacker", "")), str(report["encoder"]), found, copies)
        except UNFIT as error:
            raise InvalidInputError(
                "--baseline: the file is not an audit report. Give the output of `audit --json`."
            ) from error


def check_baseline(now: Measured, before: Measured, *, seed: int = 0) -> Check:
    """Check that F1 is not significantly higher than in an earlier audit.

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
        message = "One of the two audits measured fewer than 2 rows; an estimate does not count."
        return Check(name, Outcome.NOT_MEASURED, message)
    for what in ("attacker", "encoder"):
        one, other = getattr(now, what), getattr(before, what)
        if one != other:
            message = f"The {what} changed from {other} to {one}: the F1 cannot be compared."
            return Check(name, Outcome.NOT_MEASURED, message)
    rng = np.random.default_rng(seed)
    shared = sorted(now.rows.keys() & before.rows.keys())
    if len(shared) >= _LEAST_PAIRS:
        change = 100 * np.array([now.rows[row] - before.rows[row] for row in shared])
        value, means = change.mean(), _bootstrap_means(change, now.units(shared), rng)
        of = f"{len(shared):,} rows that both audits attacked"
    else:
        one, two = (100 * np.array(list(found.rows.values())) for found in (now, before))
        value = one.mean() - two.mean()
        means = _bootstrap_means(one, now.units([*now.rows]), rng)
        means = means - _bootstrap_means(two, before.units([*before.rows]), rng)
        of = f"samples of {len(one):,} rows now and {len(two):,} rows before"
    low, high = map(float, np.percentile(means, [2.5, 97.5]))
    change_of = Score(float(value), Interval(low, high), 0).in_text()
    summary = f"F1 changed by {change_of} points from the baseline ({of})"
    if low > 0:
        return Check(name, Outcome.FAILED, f"{summary}: significantly worse.")
    verdict = "significantly better" if high < 0 else "not significantly different"
    return Check(name, Outcome.PASSED, f"{summary}: {verdict}.")


_LEAST_PAIRS = 30
_DRAWS = 10_000


def _bootstrap_means(values: np.ndarray, units: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw bootstrap samples of values, resampled by distinct text; return the mean of each."""
    sums, sizes = np.bincount(units, values), np.bincount(units)
    n = len(sums)
    part = max(1, 10_000_000 // n)
    drawn = []
    for start in range(0, _DRAWS, part):
        places = rng.integers(0, n, (min(part, _DRAWS - start), n))
        drawn.append(sums[places].sum(axis=1) / sizes[places].sum(axis=1))
    return np.concatenate(drawn)


def exit_status(checks: list[Check]) -> int:
    """Return 0 if all checks passed, 1 if any failed, 2 if any was not measured."""
    outcomes = {check.outcome for check in checks}
    if Outcome.FAILED in outcomes:
        return 1
    return 2 if Outcome.NOT_MEASURED in outcomes else 0
