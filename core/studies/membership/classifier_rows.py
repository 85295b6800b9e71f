"""Result rows of attacks on classifiers: rates, curves, and accuracy by class entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
from leakscope.core.attacks.membership.classifiers.outputs import Outputs
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.predictability import ALPHA, Predictability
from leakscope.core.attacks.membership.ranking import Ranking, roc_curve
from leakscope.core.attacks.membership.rates import PRIORS, predictive_value
from leakscope.core.attacks.membership.score_distribution import score_counts
from leakscope.core.intervals import clopper_pearson
from leakscope.core.results import Score
from leakscope.core.results.rows import ResultTable, Row

N_BUCKETS = 10
"""The number of groups of users by class entropy (Shejwalkar et al. 2021, Fig. 6)."""

NULL = "null_auc"
"""The measure of the AUC on a model that was trained on none of the attacked, with the same labels:
not a leak, and about one half if members and non-members do not differ otherwise."""

BLIND = "blind_auc"
"""The measure of the AUC of the texts alone, without any model; see
`leakscope.core.attacks.membership.predictability`:
above chance, the split into members and non-members itself leaks."""

RATE_NAMES = {0.1: "tpr_at_10", 0.01: "tpr_at_1", 0.001: "tpr_at_0_1"}
"""The measure of the true-positive rate at each false-positive rate."""

_DATED = ("date", "year")
"""Class columns that hold times; of dates, the class is the year."""

_CURVE_RATES = np.logspace(-3, 0, 25)


def is_by_year(label: str) -> bool:
    """Return whether a class column holds dates or years, which alone reveal who wrote then."""
    return label in _DATED


def describe_class(label: str) -> str:
    """Return `year` for a class column of dates, otherwise the column's name.

    Examples
    --------
    >>> describe_class("date"), describe_class("newsgroup")
    ('year', 'newsgroup')
    """
    return "year" if is_by_year(label) else label


def row_from_outcome(outcome: AttackOutcome, shared: dict[str, Any]) -> Row:
    """Convert an attack's outcome to a row; its facts list coarse and unresolvable rates."""
    plan = outcome.plan
    scores = {"auc": outcome.auc, "control_auc": outcome.control}
    if outcome.accuracy is not None and outcome.advantage is not None:
        scores |= {"accuracy": outcome.accuracy, "advantage": outcome.advantage}
    unseen = [RATE_NAMES[at.fpr] for at in outcome.at if not at.is_shown]
    coarse = [RATE_NAMES[at.fpr] for at in outcome.at if at.resolution == "coarse"]
    scores |= {RATE_NAMES[at.fpr]: at.tpr for at in outcome.at if at.is_shown}
    facts = {
        "attack": plan.attack,
        "level": plan.level,
        **{name: str(value) for name, value in plan.settings.items()},
        "n": outcome.auc.n,
        "not_resolvable": unseen,
        "coarse": coarse,
        "curve": _curve_points(outcome.ranking),
        "score_counts": score_counts(outcome.ranking),
        **_decision_rates(outcome),
        **shared,
    }
    return Row(scores=scores, facts=facts)


def with_blind_baseline(rows: Sequence[Row], found: Predictability) -> list[Row]:
    """Return rows with the blind baseline's AUC and p-value added to each."""
    return [
        replace(
            row,
            scores={**row.scores, BLIND: found.auc},
            facts={**row.facts, "blind_p": found.p_value},
        )
        for row in rows
    ]


def describe_blind_baseline(rows: Sequence[Row], *, is_percent: bool = False) -> str:
    """Describe the blind baseline of the texts alone in a sentence; "" if not measured.

    The smallest p-value over draws decides, corrected for their number.

    Parameters
    ----------
    is_percent : bool
        Whether to give the AUC from 0 to 100, as pages do, instead of 0 to 1.
    """
    by_seed = {row["seed"]: row for row in ResultTable(rows).having(BLIND)}
    measured = ResultTable(by_seed.values())
    if not measured:
        return ""
    auc = measured.mean(BLIND, is_same_sample=True)
    least = min(measured.column("blind_p"))
    judged = "the split leaks" if least * len(measured) <= ALPHA else "not above chance"
    area = auc.in_percent().in_text() if is_percent else auc.in_text(3)
    return f"The texts alone, without any model, have an AUC of {area}: {judged}."


def _curve_points(ranking: Ranking) -> list[list[float]]:
    """Return a ranking's ROC curve as [FPR, TPR] pairs at fixed false-positive rates."""
    false, true = roc_curve(ranking)
    at = np.searchsorted(false, _CURVE_RATES, side="right") - 1
    pairs = zip(_CURVE_RATES, true[at], strict=True)
    return [[round(float(x), 6), round(float(y), 6)] for x, y in pairs]


def _decision_rates(outcome: AttackOutcome) -> dict[str, Any]:
    """Return, as facts, TPR and FPR of an attack's decisions, and predictive values."""
    if outcome.decided is None:
        return {}
    members = outcome.ranking.members
    true = float(outcome.decided[members].mean())
    false = float(outcome.decided[~members].mean())
    if not true and not false:  # no one is called a member
        return {"tpr": 0.0, "fpr": 0.0}
    worth = [round(predictive_value(true, false, prior), 6) for prior in PRIORS]
    return {"tpr": true, "fpr": false, "predictive_values": worth}


def class_entropies(outputs: Outputs) -> NDArray[np.float64]:
    """Return the class entropy of each user's texts in nats, users in alphabetical order.

    Implements H_c of Shejwalkar et al. (2021), Appendix C.1: −Σ_c q_c ln q_c, q_c being the share
    of the user's texts that are of class c. Differs from the paper: nothing, but it states no base.

    Examples
    --------
    >>> half = np.full((3, 2), 0.5)
    >>> some = Outputs(half, np.array([0, 1, 1]), np.array([True, True, False]), ("a", "a", "b"))
    >>> class_entropies(some).round(3).tolist()
    [0.693, 0.0]
    """
    users = users_of(outputs)
    counts = np.zeros((len(users.names), outputs.n_classes))
    np.add.at(counts, (users.rows, outputs.labels), 1)
    shares = counts / counts.sum(1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    found: NDArray[np.float64] = np.abs((shares * logs).sum(1))
    return found


def entropy_rows(outcome: AttackOutcome, target: Outputs, shared: dict[str, Any]) -> list[Row]:
    """Return a row per group of users of similar class entropy: an attack's accuracy on it.

    Users of equal entropy share a bucket: that of the first of them by rank.
    """
    if outcome.decided is None:
        return []
    entropies = class_entropies(target)
    right = outcome.decided == outcome.ranking.members
    rows = []
    of_user = _bucket_numbers(entropies)
    for i in np.unique(of_user):
        bucket = np.flatnonzero(of_user == i)
        n, n_right = len(bucket), int(right[bucket].sum())
        facts = {
            "attack": outcome.plan.attack,
            "level": "user",
            **{name: str(value) for name, value in outcome.plan.settings.items()},
            "n": n,
            "bucket": int(i),
            "class_entropy": round(float(entropies[bucket].mean()), 6),
            **shared,
        }
        score = Score(n_right / n, clopper_pearson(n_right, n), n, 0.5)
        rows.append(Row(scores={"bucket_accuracy": score}, facts=facts))
    return rows


def _bucket_numbers(entropies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return each user's bucket number by entropy: nearly equal sizes, without splitting ties."""
    told = entropies.round(9)  # equal shares may differ by rounding
    ranked = np.sort(told)
    parts = np.array_split(np.arange(len(told)), min(N_BUCKETS, len(told)))
    of_rank = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    found: NDArray[np.int64] = of_rank[np.searchsorted(ranked, told)]
    return found
