"""What attacks on a classifier reached, as rows: rates, curves, and accuracy by users' classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.evaluation import AttackOutcome
from core.attacks.membership.classifiers.outputs import Outputs
from core.attacks.membership.classifiers.users import users_of
from core.attacks.membership.drawn import score_counts
from core.attacks.membership.predictability import ALPHA, Predictability
from core.attacks.membership.rates import PRIORS, predictive_value
from core.attacks.membership.roc import Ranking, curve
from core.intervals import clopper_pearson
from core.results import Score
from core.studies.rows import Row, mean_row_score

__all__ = [
    "BLIND",
    "NULL",
    "N_BUCKETS",
    "RATE_NAMES",
    "class_entropies",
    "class_said",
    "entropy_rows",
    "is_by_year",
    "joined_buckets",
    "blind_said",
    "row_of",
    "with_blind",
]

N_BUCKETS = 10
"""Of users by the entropy of their classes (Shejwalkar et al. 2021, Fig. 6)."""

NULL = "null_auc"
"""What rows call the AUC on a model that was trained on none of the attacked, members told alike:
what is found there is no leak, and about one half where members and others differ in nothing."""

BLIND = "blind_auc"
"""What rows call the AUC of the texts alone, without any model (`core.attacks.membership.blind`):
above chance, the split of members and others leaks by itself."""

RATE_NAMES = {0.1: "tpr_at_10", 0.01: "tpr_at_1", 0.001: "tpr_at_0_1"}
"""What rows call the true-positive rate at so many false accusations."""

_DATED = ("date", "year")
"""Columns of classes that say when: of dates the class is the year."""

_CURVE_RATES = np.logspace(-3, 0, 25)


def is_by_year(label: str) -> bool:
    """Return whether classes are years, which tell by themselves who was there to write."""
    return label in _DATED


def class_said(label: str) -> str:
    """Return what a column of classes tells apart.

    Examples
    --------
    >>> class_said("date"), class_said("newsgroup")
    ('year', 'newsgroup')
    """
    return "year" if is_by_year(label) else label


def row_of(outcome: AttackOutcome, shared: dict[str, Any]) -> Row:
    """Return the row of an attack: rates are named that are coarse or cannot be measured."""
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
        "curve": _curve(outcome.ranking),
        "score_counts": score_counts(outcome.ranking),
        **_worth(outcome),
        **shared,
    }
    return Row(scores=scores, facts=facts)


def with_blind(rows: Sequence[Row], found: Predictability) -> list[Row]:
    """Return rows with what texts alone predict, and the p-value of it."""
    return [
        replace(
            row,
            scores={**row.scores, BLIND: found.auc},
            facts={**row.facts, "blind_p": found.p_value},
        )
        for row in rows
    ]


def blind_said(rows: Sequence[Row]) -> str:
    """Return in a sentence what the texts alone predict; empty of rows that were measured earlier.

    The greatest of the draws counts: a split that leaks once leaks.
    """
    measured = [row for row in rows if BLIND in row.scores]
    if not measured:
        return ""
    auc = mean_row_score(measured, BLIND, is_same_sample=True)
    least = min(float(row["blind_p"]) for row in measured)
    n_draws = len({row["seed"] for row in measured})
    judged = "the split leaks" if least * n_draws <= ALPHA else "not above chance"
    return f"The texts alone, without any model, reach an AUC of {auc.said(3)}: {judged}."


def _curve(ranking: Ranking) -> list[list[float]]:
    """Return the true-positive rate at some rates of false accusations, for drawing."""
    false, true = curve(ranking)
    at = np.searchsorted(false, _CURVE_RATES, side="right") - 1
    pairs = zip(_CURVE_RATES, true[at], strict=True)
    return [[round(float(x), 6), round(float(y), 6)] for x, y in pairs]


def _worth(outcome: AttackOutcome) -> dict[str, Any]:
    """Return the rates of the attacker's decisions, and what an accusation is worth at priors."""
    if outcome.decided is None:
        return {}
    members = outcome.ranking.members
    true = float(outcome.decided[members].mean())
    false = float(outcome.decided[~members].mean())
    if not true and not false:  # nobody is accused
        return {"tpr": 0.0, "fpr": 0.0}
    worth = [round(predictive_value(true, false, prior), 6) for prior in PRIORS]
    return {"tpr": true, "fpr": false, "predictive_values": worth}


def class_entropies(outputs: Outputs) -> NDArray[np.float64]:
    """Return the entropy of the classes of each user's texts in nats, users by the alphabet.

    Implements H_c of Shejwalkar et al. (2021), Appendix C.1: −Σ_c q_c ln q_c, q_c being the share
    of the user's texts that are of class c. Differs from the paper: nothing; it tells no base.

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
    """Return how often the attack is right about users, by the entropy of their classes.

    Users of equal entropy are of one bucket: that of the first of them by rank.
    """
    if outcome.decided is None:
        return []
    entropies = class_entropies(target)
    right = outcome.decided == outcome.ranking.members
    rows = []
    of_user = _buckets(entropies)
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


def _buckets(entropies: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bucket of each user: as many in each as ties allow, no tie parted."""
    told = entropies.round(9)  # the same shares, added up in another order
    ranked = np.sort(told)
    parts = np.array_split(np.arange(len(told)), min(N_BUCKETS, len(told)))
    of_rank = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    found: NDArray[np.int64] = of_rank[np.searchsorted(ranked, told)]
    return found


def joined_buckets(rows: Sequence[Row]) -> list[Row]:
    """Return rows of buckets of a task, those joined between which some seed parts a tie.

    Earlier files have such: a row of equal entropy is one with the row before, in every seed.
    """
    by_seed: dict[Any, dict[int, Row]] = {}
    for row in rows:
        by_seed.setdefault(row["seed"], {})[int(row["bucket"])] = row
    tied = {
        bucket
        for own in by_seed.values()
        for bucket, row in own.items()
        if bucket - 1 in own and own[bucket - 1]["class_entropy"] == row["class_entropy"]
    }
    found = []
    for own in by_seed.values():
        groups: list[list[Row]] = []
        for bucket, row in sorted(own.items()):
            if bucket in tied and groups:
                groups[-1].append(row)
            else:
                groups.append([row])
        found += [_joined(group) for group in groups]
    return found


def _joined(rows: Sequence[Row]) -> Row:
    """Return one row of the users of several."""
    if len(rows) == 1:
        return rows[0]
    counts = [int(row["n"]) for row in rows]
    n = sum(counts)
    shares = [row.scores["bucket_accuracy"].value for row in rows]
    right = round(sum(c * share for c, share in zip(counts, shares, strict=True)))
    entropies = [float(row["class_entropy"]) for row in rows]
    entropy = sum(c * each for c, each in zip(counts, entropies, strict=True)) / n
    score = Score(right / n, clopper_pearson(right, n), n, 0.5)
    facts = rows[0].facts | {"n": n, "class_entropy": round(entropy, 6)}
    return replace(rows[0], facts=facts, scores={"bucket_accuracy": score})
