"""What is told of a classifier of one's own that was attacked: by commands and on pages alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    has_both_kinds_of_users,
    sides_there,
)
from core.attacks.membership.classifiers.features import FEATURES
from core.attacks.membership.classifiers.outputs import Shadows
from core.attacks.membership.classifiers.probabilities_file import OwnOutputs
from core.attacks.membership.rates import AtRate
from core.attacks.membership.verdict import worth_at
from core.results import Score

__all__ = ["facts_of", "missing", "record_of", "result_of", "setting_said"]


def result_of(
    own: OwnOutputs, outcomes: Sequence[AttackOutcome], priors: Sequence[float], seed: int
) -> dict[str, Any]:
    """Return all that is told, JSON-able: what was attacked, then each attack by its name."""
    by_level = {
        level: {o.plan.name: record_of(o, priors) for o in outcomes if o.plan.level == level}
        for level in ("sample", "user")
    }
    notes = [*own.notes, *missing(own)]
    return {**facts_of(own), "priors": list(priors), "seed": seed, "notes": notes, **by_level}


def missing(own: OwnOutputs) -> list[str]:
    """Return what could not be attacked, and what would be needed."""
    found = []
    if own.shadows is not None and not all(sides_there(own.shadows)):
        found.append(
            "the shadow models were all trained on every sample, or all on none, so that what "
            "compares the two is left out: train each on half of the samples, drawn at random"
        )
    if own.shadows is None:
        found.append(
            "without shadow models only features are ranked: thresholds, LiRA, RMIA and BaVarIA "
            "are left out, and what is measured is less than what an attacker may reach"
        )
    if own.target.users is not None and not has_both_kinds_of_users(own.target):
        found.append(
            "every user has a sample among the members (or none has), so that users are not "
            "attacked: train on some users and leave others out"
        )
    return found


def facts_of(own: OwnOutputs) -> dict[str, Any]:
    """Return what was attacked, in numbers."""
    target, shadows = own.target, own.shadows
    n_shadows = shadows.n_models if isinstance(shadows, Shadows) else len(shadows or ())
    right = target.probabilities.argmax(axis=1) == target.labels
    return {
        "n": len(target),
        "n_members": int(target.members.sum()),
        "n_classes": target.n_classes,
        "n_users": None if target.users is None else len(set(target.users)),
        "n_shadows": n_shadows,
        "accuracy_on_members": float(right[target.members].mean()),
        "accuracy_on_others": float(right[~target.members].mean()),
    }


def record_of(outcome: AttackOutcome, priors: Sequence[float]) -> dict[str, Any]:
    """Return what is told of an attack; rates that so few samples cannot tell are null.

    Intervals of what an accusation is worth take the worse end of either rate, as `worth_at` does.
    """
    told = {f"{at.fpr:g}": at for at in outcome.at}
    seen = {name: at for name, at in told.items() if at.is_resolvable}
    record: dict[str, Any] = {
        **outcome.plan.settings,
        **outcome.auc.to_record("auc"),
        "n": outcome.auc.n,
        "chance": 0.5,
        "tpr_at_fpr": {name: seen[name].tpr.value if name in seen else None for name in told},
        "tpr_at_fpr_ci95": {name: [at.tpr.ci95.low, at.tpr.ci95.high] for name, at in seen.items()},
        "ppv_at_fpr": {
            name: {prior: score.value for prior, score in _worth(at, priors).items()}
            for name, at in seen.items()
        },
        "ppv_at_fpr_ci95": {
            name: {p: [s.ci95.low, s.ci95.high] for p, s in _worth(at, priors).items()}
            for name, at in seen.items()
        },
        **outcome.control.to_record("auc_shuffled"),
    }
    if outcome.calibrated:
        record["by_shadow_threshold"] = {
            f"{at.fpr:g}": _reached(outcome, at) for at in outcome.calibrated if at.is_resolvable
        }
    for name in ("accuracy", "advantage"):
        score = getattr(outcome, name)
        if score is not None:
            record |= score.to_record(name)
    return record


def _reached(outcome: AttackOutcome, at: AtRate) -> dict[str, float]:
    """Return what a threshold of shadow models finds of the target, and falsely accuses."""
    called, members = outcome.ranking.scores > at.threshold, outcome.ranking.members
    return {
        "threshold": at.threshold,
        "tpr": float(called[members].mean()),
        "fpr": float(called[~members].mean()),
    }


def _worth(at: AtRate, priors: Sequence[float]) -> dict[str, Score]:
    """Return what an accusation is worth at each prior."""
    return {f"{prior:.4g}": worth_at(at, prior) for prior in priors}


def setting_said(value: Any) -> str:
    """Return what an attack was set to, in words.

    Examples
    --------
    >>> setting_said("modified_entropy"), setting_said("lira"), setting_said("mean")
    ('modified entropy', 'of LiRA', 'mean')
    """
    entry = FEATURES.get(str(value))
    if entry is not None:
        return entry.title.lower()
    return {"bavaria": "of BaVarIA", "lira": "of LiRA"}.get(str(value), str(value))
