"""What is told of a classifier of one's own that was attacked: by commands and on pages alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtri

from core.attacks.membership.blind import blind_baseline
from core.attacks.membership.classifiers.evaluation import (
    AttackOutcome,
    has_both_kinds_of_users,
    sides_there,
)
from core.attacks.membership.classifiers.features import FEATURES
from core.attacks.membership.classifiers.outputs import Shadows
from core.attacks.membership.classifiers.probabilities_file import OwnOutputs
from core.attacks.membership.predictability import Predictability
from core.attacks.membership.rates import AtRate
from core.attacks.membership.verdict import worth_at
from core.results import Score
from core.said import auc_said

__all__ = [
    "blind_of",
    "design_of",
    "facts_of",
    "implausible",
    "is_significant",
    "leaks_of_the_split",
    "leaks_without_model",
    "missing",
    "record_of",
    "result_of",
    "setting_said",
    "strongest_of",
    "verdict_of_attacks",
]

_FAR_BELOW = 0.5
"""Share of the accuracy of guessing below which a classifier is implausible."""

_OFF_BY_ONE = 0.5
"""Share of answers next to the label from which on labels may be off by one."""

_ALPHA = 0.001


def result_of(
    own: OwnOutputs, outcomes: Sequence[AttackOutcome], priors: Sequence[float], seed: int
) -> dict[str, Any]:
    """Return all that is told, JSON-able: what was attacked, then each attack by its name.

    `notes` say what a reader should know: how the file was read, what could not be attacked, what
    makes the input implausible, and what other than the model tells members from others.
    """
    blind = blind_of(own, seed)
    design = design_of(outcomes)
    by_level = {
        level: {o.plan.name: record_of(o, priors) for o in outcomes if o.plan.level == level}
        for level in ("sample", "user")
    }
    notes = [*own.notes, *implausible(own), *missing(own), *leaks_of_the_split(outcomes, blind)]
    return {
        **facts_of(own),
        "verdict": verdict_of_attacks(outcomes, blind),
        "shadow_design": None if design is None else design.to_dict(),
        "blind_baseline": None if blind is None else blind.to_dict(),
        "priors": list(priors),
        "seed": seed,
        "notes": notes,
        **by_level,
    }


def blind_of(own: OwnOutputs, seed: int = 0) -> Predictability | None:
    """Return how well the texts alone predict members; None where no texts are given."""
    if not any(text.strip() for text in own.texts):
        return None
    return blind_baseline(own.texts, own.target.members, own.target.users, seed=seed)


def design_of(outcomes: Sequence[AttackOutcome]) -> Predictability | None:
    """Return how well the shadow design alone predicts members; None where no attack uses it."""
    return next((outcome.design for outcome in outcomes if outcome.design is not None), None)


def leaks_of_the_split(
    outcomes: Sequence[AttackOutcome], blind: Predictability | None
) -> list[str]:
    """Return notes on what predicts members without the model."""
    found = []
    design = design_of(outcomes)
    if design is not None and design.is_above_chance:
        names = ", ".join(outcome.plan.name for outcome in outcomes if not outcome.is_valid)
        found.append(
            "the shadow design is not valid: which shadow models hold a sample predicts whether "
            f"the classifier does ({_predicted_said(design)}). What {names} find is no evidence of "
            "a leak. Train each shadow model on a random half of all samples, drawn without regard "
            "to the classifier's own members"
        )
    if blind is not None and blind.is_above_chance:
        found.append(
            "the split itself leaks: the words and lengths of the texts alone, without the "
            f"classifier, predict who is a member ({_predicted_said(blind)}). What attacks find "
            "may be that difference. Draw members and non-members from one random split of one "
            "source"
        )
    return found


def leaks_without_model(record: Mapping[str, Any]) -> bool:
    """Return whether a record of `result_of` says that members are predicted without the model."""
    found = (record["shadow_design"], record["blind_baseline"])
    return any(one is not None and one["is_above_chance"] for one in found)


def _predicted_said(found: Predictability) -> str:
    return f"AUC {auc_said(found.auc)}, permutation p = {found.p_value:.2g}"


def implausible(own: OwnOutputs) -> list[str]:
    """Return a note where the classifier is right far less often than by chance."""
    target = own.target
    answered = target.probabilities.argmax(axis=1)
    n, n_classes = len(target), target.n_classes
    n_right = int((answered == target.labels).sum())
    if n_right / n > _FAR_BELOW / n_classes or bdtr(n_right, n, 1 / n_classes) > _ALPHA:
        return []
    note = (
        f"the classifier is right on {n_right / n:.1%} of the samples, far below chance "
        f"({1 / n_classes:.1%}): labels and columns of probabilities may not go together"
    )
    for step, side in ((-1, "before"), (1, "after")):
        share = float((answered == target.labels + step).mean())
        if share > _OFF_BY_ONE:
            low, high = (own.classes[end(target.labels)] for end in (np.min, np.max))
            note += (
                f". The labels may be off by one: they are {low} to {high} beside the columns "
                f"p_{own.classes[0]} to p_{own.classes[-1]}, and {share:.1%} of the answers are "
                f"the class just {side} the label"
            )
    return [note]


def strongest_of(outcomes: Sequence[AttackOutcome]) -> AttackOutcome | None:
    """Return the valid attack with the highest lower end of its AUC; None where none is valid."""
    valid = [outcome for outcome in outcomes if outcome.is_valid]
    return max(valid, key=lambda outcome: outcome.auc.ci95.low) if valid else None


def is_significant(outcome: AttackOutcome, outcomes: Sequence[AttackOutcome]) -> bool:
    """Return whether an attack is above chance, allowing for all valid ones that were tried.

    The lower half of its interval is widened to the level 1 − .05 / k of k attacks (Bonferroni).
    """
    k = sum(each.is_valid for each in outcomes)
    widening = float(ndtri(1 - 0.025 / max(k, 1)) / ndtri(0.975))
    auc = outcome.auc
    return auc.value - (auc.value - auc.ci95.low) * widening > auc.chance


def verdict_of_attacks(outcomes: Sequence[AttackOutcome], blind: Predictability | None) -> str:
    """Return in a sentence or two what the attacks found, and whether it can be a leak."""
    design, best = design_of(outcomes), strongest_of(outcomes)
    n_valid = sum(outcome.is_valid for outcome in outcomes)
    found = []
    if design is not None and design.is_above_chance:
        n_invalid = len(outcomes) - n_valid
        found.append(
            f"The shadow models cannot be used: who is in which of them gives the members away, so "
            f"that {n_invalid} attacks are not valid."
        )
    if blind is not None and blind.is_above_chance:
        found.append(
            "Members and non-members differ in their words, so that no attack can show a leak: the "
            f"texts alone reach an AUC of {auc_said(blind.auc)}."
        )
    elif best is not None and is_significant(best, outcomes):
        share, interval = best.auc.in_percent().parts(0)
        found.append(
            f"An attack ranks a member above a non-member in {share} % of pairs (95 % CI "
            f"{interval}; chance 50), the best of {n_valid}."
        )
    elif best is not None:
        found.append(
            f"None of {n_valid} attacks finds members significantly better than chance; that is no "
            "proof that nothing leaks."
        )
    return " ".join(found)


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

    Of an attack that is not valid the AUC alone is told, and that it is not valid. Intervals of
    what an accusation is worth take the worse end of either rate, as `worth_at` does.
    """
    told = {f"{at.fpr:g}": at for at in outcome.at}
    seen = {name: at for name, at in told.items() if at.is_shown and outcome.is_valid}
    record: dict[str, Any] = {
        **outcome.plan.settings,
        **outcome.auc.to_record("auc"),
        "n": outcome.auc.n,
        "chance": 0.5,
        "is_valid": outcome.is_valid,
        "tpr_at_fpr": {name: seen[name].tpr.value if name in seen else None for name in told},
        "resolution_at_fpr": {name: at.resolution for name, at in told.items()},
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
    if not outcome.is_valid:
        return record
    if outcome.calibrated:
        record["by_shadow_threshold"] = {
            f"{at.fpr:g}": _reached(outcome, at) for at in outcome.calibrated if at.is_shown
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
