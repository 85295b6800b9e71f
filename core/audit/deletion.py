"""Deletion tests: whether deleted texts can still be inferred from an index.

A deletion is tested as presence is: the deleted texts are compared with texts of the same kind that
were never in the index. If an attacker cannot distinguish the two, this attack infers nothing about
the deleted texts from what stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from leakscope.core.audit.gate import Check, Outcome
from leakscope.core.audit.presence import (
    ALPHA,
    Attack,
    Comparison,
    IndexAccess,
    Nearest,
    check_presence,
)
from leakscope.core.audit.sources import Sample, VectorSource
from leakscope.core.errors import InvalidInputError
from leakscope.core.formatting import format_auc
from leakscope.core.protocols import Encoder, OnProgress, no_progress
from leakscope.core.results import Score

LIMIT = 0.6
"""The AUC's interval must end at or below this to certify a deletion."""

LEAST_CONTROL = 0.8
"""The AUC's interval for texts in the index must start at or above this, as a control."""

RARE = 0.01
"""P-value up to which the number of deleted texts with top scores is not due to chance."""


def texts_needed(limit: float = LIMIT) -> int:
    """Return how many deleted texts, and as many references, a certificate needs at least.

    For an AUC of exactly 0.5, whose variance is (2n + 1) / (12n²) (Mann & Whitney 1947), the upper
    end of the interval has to reach the limit: z √((2n + 1) / 12) / n ≤ limit - 0.5.

    Examples
    --------
    >>> texts_needed(0.55), texts_needed(0.6)
    (257, 65)
    """
    if not 0.5 < limit <= 1:
        raise InvalidInputError(f"limit must be above 0.5 and at most 1, got {limit}.")
    # n² a - 2n - 1 ≥ 0 with a = 12 ((limit - 0.5) / z)²
    a = 12 * ((limit - 0.5) / float(ndtri(0.975))) ** 2
    return math.ceil((1 + math.sqrt(1 + a)) / a)


@dataclass(frozen=True)
class DeletionReport:
    """Whether deleted texts can still be inferred from what stays in an index.

    Attributes
    ----------
    comparison : Comparison
        Of the deleted texts with texts that were never in the index.
    checks : tuple of Check
        One for each kind of access: passed is a certificate, failed means still inferable, and not
        measured that no certificate can be given.
    limit : float
        Greatest upper end of the AUC's interval that was allowed.
    """

    comparison: Comparison
    checks: tuple[Check, ...]
    limit: float

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the checks: failed, then not measured, then passed."""
        found = {check.outcome for check in self.checks}
        order = (Outcome.FAILED, Outcome.NOT_MEASURED, Outcome.PASSED)
        return next(outcome for outcome in order if outcome in found)

    @property
    def sentence(self) -> str:
        """The message of the worst check: whether deleted texts can be inferred."""
        return next(check.message for check in self.checks if check.outcome is self.outcome)

    @property
    def remaining(self) -> tuple[Nearest, ...]:
        """The deleted texts that rows still reveal, each with its nearest row; empty if none."""
        return remaining_rows(self.comparison, self.comparison.strongest)

    @property
    def not_tested(self) -> tuple[str, ...]:
        """Sentences on what the certificate does not cover."""
        found = list(self.comparison.not_tested)
        n = self.comparison.n_texts
        found.append(
            f"Each single text: the certificate covers the average of the {n:,} texts."
            if n > 1
            else "A certificate for a single text: one text has a p-value but no AUC."
        )
        return tuple(found)

    def to_dict(self, n_shown: int = 10) -> dict[str, Any]:
        """Return the report as a JSON-able dict without texts, with `n_shown` rows per attack."""
        return (
            {
                "answer": self.sentence,
                "outcome": self.outcome.value,
                "limit": self.limit,
                "checks": [check.to_dict() for check in self.checks],
                "rows_that_stay": [found.to_dict() for found in self.remaining],
            }
            | self.comparison.to_dict(n_shown)
            | {"not_tested": list(self.not_tested)}
        )


def check_deletion(
    source: VectorSource | Sample,
    deleted: Sequence[str],
    references: Sequence[str],
    encoder: Encoder,
    *,
    present: Sequence[str] = (),
    access: Sequence[IndexAccess] = (IndexAccess.VECTORS,),
    limit: float = LIMIT,
    n_digits: int = 2,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> DeletionReport:
    """Test whether deleted texts can still be inferred from an index; return the report.

    Parameters
    ----------
    source : VectorSource or Sample
        The index after the deletion; a sample must be whole.
    deleted : sequence of str
    references : sequence of str
        Of the same kind, never in the index.
    encoder : Encoder
        The one that made the vectors, behind its defence where there is one.
    present : sequence of str
        Texts that are in the index. Without them nothing shows that the attack finds any, and no
        certificate is given.
    access : sequence of IndexAccess
    limit : float
        In (0.5, 1].

    Returns
    -------
    DeletionReport

    Raises
    ------
    InvalidInputError
        As `leakscope.core.audit.presence.check_presence`.
    """
    n_needed = texts_needed(limit)
    comparison = check_presence(
        source,
        deleted,
        references,
        encoder,
        present=present,
        access=access,
        n_digits=n_digits,
        seed=seed,
        on_progress=on_progress,
    )
    checks = tuple(
        _check_access(comparison, attack, limit, n_needed) for attack in comparison.attacks
    )
    return DeletionReport(comparison, checks, limit)


def remaining_rows(comparison: Comparison, attack: Attack) -> tuple[Nearest, ...]:
    """Return the deleted texts that rows of the index still reveal, each with its nearest row.

    Rows that hold the very vector of one; those nearest to a text that a row's text nearly repeats;
    those of a text that is significantly unlike absent ones by itself (Bonferroni); and, where
    deleted texts crowd the top scores, those of each with p ≤ 0.05.
    """
    repeated = set(comparison.repeated)
    are_crowding = attack.p_crowding <= RARE
    return tuple(
        found
        for found in attack.nearest
        if found.is_same
        or found.text in repeated
        or found.p_value <= (ALPHA if are_crowding else ALPHA / comparison.n_texts)
    )


def _check_access(found: Comparison, attack: Attack, limit: float, n_needed: int) -> Check:
    """Decide whether the deletion passes for one kind of access: passed, failed or not measured."""
    name, value = f"deletion-{attack.access.value}", attack.auc
    control = found.controls.get(attack.access)
    facts = (
        f"An attacker who sees {attack.access.description} separates {found.n_texts:,} deleted "
        f"texts from {found.references.n_compared:,} texts that were never in the index with an "
        f"AUC of {format_auc(value)}"
    )
    n_same = sum(near.is_same for near in attack.nearest)
    n_near = len(set(found.repeated) - {near.text for near in attack.nearest if near.is_same})
    if n_same or n_near:
        message = (
            f"Still inferable: a remaining row has the same vector as {n_same:,} of "
            f"{found.n_texts:,} deleted texts, and {n_near:,} more have a near-duplicate there. "
            f"{facts}."
        )
        return Check(name, Outcome.FAILED, message)
    if not found.is_valid:
        return Check(name, Outcome.NOT_MEASURED, f"Cannot certify. {found.not_tested[-1]}")
    is_above = value.ci95.low > 0.5 and value.ci95.high > limit
    if is_above or attack.p_crowding <= RARE or remaining_rows(found, attack):
        crowd = f"the probability that this many score high by chance is {attack.p_crowding:.2g}"
        return Check(name, Outcome.FAILED, f"Still inferable. {facts}; {crowd}.")
    if value.ci95.high < 0.5:
        message = (
            f"Cannot certify. {facts}: the references score higher than the deleted texts, so they "
            "are a different kind of text or in the index. Give references from the same random "
            "split."
        )
        return Check(name, Outcome.NOT_MEASURED, message)
    if reason := _control_problem(control):
        return Check(name, Outcome.NOT_MEASURED, f"Cannot certify. {reason}")
    if value.ci95.high <= limit and min(found.n_texts, found.references.n_compared) >= n_needed:
        differ = (
            "significantly above chance, but only slightly"
            if value.ci95.low > 0.5
            else "not significantly different from chance"
        )
        message = (
            f"Certificate. {facts}: {differ}. The upper end of the interval is at most "
            f"{100 * limit:g}."
        )
        return Check(name, Outcome.PASSED, message)
    return Check(name, Outcome.NOT_MEASURED, _too_few_message(found, value, limit, n_needed, facts))


def _control_problem(control: Score | None) -> str:
    """Return why a control score does not show that the attack works, or an empty string."""
    if control is None:
        return (
            "No text is known to be in the index, so the attack could not be tested on one. Give "
            "some texts that stay in it."
        )
    if not control.ci95.low >= LEAST_CONTROL:
        return (
            "The attack is too weak: it finds texts in the index with an AUC of only "
            f"{format_auc(control)}, and the interval must start at {100 * LEAST_CONTROL:g} or "
            "above. Name the encoder of the vectors, or give more texts that stay."
        )
    return ""


def _too_few_message(
    found: Comparison, value: Score, limit: float, n_needed: int, facts: str
) -> str:
    """Return the message for an interval that includes the limit: how many texts are needed."""
    n = min(found.n_texts, found.references.n_compared)
    if n < n_needed:
        n_more = n_needed
    elif value.value < limit:  # the interval narrows with the square root of the texts
        n_more = math.ceil(n * ((value.ci95.high - value.value) / (limit - value.value)) ** 2)
    else:
        return f"Cannot certify. {facts}: the interval includes the limit {100 * limit:g}."
    n_references = math.ceil(1.5 * n_more)  # a third of them calibrates the attack
    return (
        f"Cannot certify: too few texts. {facts}; the interval must end at or below "
        f"{100 * limit:g}. At least {n_more:,} deleted texts and {n_references:,} references are "
        "needed."
    )
