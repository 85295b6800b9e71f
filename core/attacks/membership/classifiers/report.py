"""The report on an attacked user classifier, for commands and pages: record, verdict, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtri

from leakscope.core.attacks.membership.classifiers.evaluation import AttackOutcome
from leakscope.core.attacks.membership.classifiers.features import FEATURES
from leakscope.core.attacks.membership.classifiers.outputs import Shadows
from leakscope.core.attacks.membership.classifiers.plans import (
    available_sides,
    has_both_kinds_of_users,
)
from leakscope.core.attacks.membership.classifiers.probabilities_file import OwnOutputs
from leakscope.core.attacks.membership.predictability import Predictability, blind_baseline
from leakscope.core.attacks.membership.rates import AtRate
from leakscope.core.attacks.membership.verdict import membership_probability
from leakscope.core.formatting import format_auc
from leakscope.core.results import Score

_FAR_BELOW = 0.5
"""A classifier is implausible if its accuracy is below this share of guessing."""

_OFF_BY_ONE = 0.5
"""The share of predictions next to the label from which labels may be off by one."""

_ALPHA = 0.001


def attack_report(
    own: OwnOutputs, outcomes: Sequence[AttackOutcome], priors: Sequence[float], seed: int
) -> dict[str, Any]:
    """Build the JSON-able report on an input and its attacks: facts, verdict, notes, records.

    `notes` say how the file was read, what could not be attacked, why the input is implausible, and
    what predicts membership without the model.
    """
    blind = blind_test(own, seed)
    design = design_test(outcomes)
    by_level = {
        level: {o.plan.name: outcome_record(o, priors) for o in outcomes if o.plan.level == level}
        for level in ("sample", "user")
    }
    notes = [
        *own.notes,
        *implausibility_notes(own),
        *missing_attack_notes(own),
        *split_leak_notes(outcomes, blind),
    ]
    return {
        **input_facts(own),
        "verdict": verdict_of_attacks(outcomes, blind),
        "shadow_design": None if design is None else design.to_dict(),
        "blind_baseline": None if blind is None else blind.to_dict(),
        "priors": list(priors),
        "seed": seed,
        "notes": notes,
        **by_level,
    }


def blind_test(own: OwnOutputs, seed: int = 0) -> Predictability | None:
    """Test whether the texts alone predict membership (blind baseline); None without texts."""
    if not any(text.strip() for text in own.texts):
        return None
    return blind_baseline(own.texts, own.target.members, own.target.users, seed=seed)


def design_test(outcomes: Sequence[AttackOutcome]) -> Predictability | None:
    """Return the first outcome's stored test of the shadow design; None if no outcome has one."""
    return next((outcome.design for outcome in outcomes if outcome.design is not None), None)


def split_leak_notes(outcomes: Sequence[AttackOutcome], blind: Predictability | None) -> list[str]:
    """Return notes if the shadow design or the texts predict membership without the model."""
    found = []
    design = design_test(outcomes)
    if design is not None and design.is_above_chance:
        names = ", ".join(outcome.plan.name for outcome in outcomes if not outcome.is_valid)
        found.append(
            "the shadow design is not valid: the training samples of the shadow models predict "
            f"those of the classifier ({_describe_predicted(design)}). What {names} find is no "
            "evidence of a leak. Train each shadow model on a random half of all samples, drawn "
            "independently of the classifier's members"
        )
    if blind is not None and blind.is_above_chance:
        found.append(
            "the split itself leaks: the words and lengths of the texts predict membership "
            f"without the classifier ({_describe_predicted(blind)}). The attacks may find only "
            "that difference. Draw members and non-members by a random split of one source"
        )
    return found


def leaks_without_model(record: Mapping[str, Any]) -> bool:
    """Return whether a report's record says that membership is predictable without the model."""
    found = (record["shadow_design"], record["blind_baseline"])
    return any(one is not None and one["is_above_chance"] for one in found)


def _describe_predicted(found: Predictability) -> str:
    """Describe a predictability test in words: AUC and p-value."""
    auc = found.auc.in_percent().in_text(is_inside=True)
    return f"AUC {auc}, permutation p = {found.p_value:.2g}"


def implausibility_notes(own: OwnOutputs) -> list[str]:
    """Return a list with a note if the classifier is right far less than chance, else []."""
    target = own.target
    answered = target.probabilities.argmax(axis=1)
    n, n_classes = len(target), target.n_classes
    n_right = int((answered == target.labels).sum())
    if n_right / n > _FAR_BELOW / n_classes or bdtr(n_right, n, 1 / n_classes) > _ALPHA:
        return []
    note = (
        f"the classifier is right on {n_right / n:.1%} of the samples, far below chance "
        f"({1 / n_classes:.1%}): the labels may not match the probability columns"
    )
    for step, side in ((-1, "before"), (1, "after")):
        share = float((answered == target.labels + step).mean())
        if share > _OFF_BY_ONE:
            low, high = (own.classes[end(target.labels)] for end in (np.min, np.max))
            note += (
                f". The labels may be off by one: they are {low} to {high} for the columns "
                f"p_{own.classes[0]} to p_{own.classes[-1]}, and {share:.1%} of the predictions "
                f"are the class just {side} the label"
            )
    return [note]


def strongest_of(outcomes: Sequence[AttackOutcome]) -> AttackOutcome | None:
    """Return the valid outcome with the highest lower bound of its AUC; None if none is valid."""
    valid = [outcome for outcome in outcomes if outcome.is_valid]
    return max(valid, key=lambda outcome: outcome.auc.ci95.low) if valid else None


def is_significant(outcome: AttackOutcome, outcomes: Sequence[AttackOutcome]) -> bool:
    """Return whether an attack's AUC is significantly above chance, with Bonferroni correction.

    The lower half of its interval is widened to the level 1 − .05 / k of k attacks (Bonferroni).
    """
    k = sum(each.is_valid for each in outcomes)
    widening = float(ndtri(1 - 0.025 / max(k, 1)) / ndtri(0.975))
    auc = outcome.auc
    return auc.value - (auc.value - auc.ci95.low) * widening > auc.chance


def verdict_of_attacks(outcomes: Sequence[AttackOutcome], blind: Predictability | None) -> str:
    """Describe in one or two sentences what the attacks found, and whether it can be a leak."""
    design, best = design_test(outcomes), strongest_of(outcomes)
    n_valid = sum(outcome.is_valid for outcome in outcomes)
    found = []
    if design is not None and design.is_above_chance:
        n_invalid = len(outcomes) - n_valid
        found.append(
            "The shadow models cannot be used: their training samples reveal the members, which "
            f"makes {n_invalid} attacks invalid."
        )
    if blind is not None and blind.is_above_chance:
        found.append(
            "Members and non-members differ in their words, so no attack can show a leak: the "
            f"texts alone reach an AUC of {format_auc(blind.auc)}."
        )
    elif best is not None and is_significant(best, outcomes):
        share, interval = best.auc.in_percent().parts(0)
        found.append(
            f"The best of {n_valid} attacks ranks a member above a non-member in {share} % of "
            f"pairs (95 % CI {interval}; guessing 50)."
        )
    elif best is not None:
        found.append(
            f"None of {n_valid} attacks finds members significantly better than guessing, which "
            "does not prove that nothing leaks."
        )
    return " ".join(found)


def missing_attack_notes(own: OwnOutputs) -> list[str]:
    """Return notes on attacks that could not be run, and on what they need."""
    found = []
    if own.shadows is not None and not all(available_sides(own.shadows)):
        found.append(
            "all shadow models were trained on every sample, or on none, so attacks that compare "
            "the two are left out: train each on half of the samples, drawn at random"
        )
    if own.shadows is None:
        found.append(
            "without shadow models only features are ranked: thresholds, LiRA, RMIA and BaVarIA "
            "are left out, and an attacker with shadow models may find more"
        )
    if own.target.users is not None and not has_both_kinds_of_users(own.target):
        found.append(
            "every user has a sample among the members, or none has, so users are not attacked: "
            "train on some users and leave others out"
        )
    return found


def input_facts(own: OwnOutputs) -> dict[str, Any]:
    """Compute the facts about a classifier's outputs by name: counts and accuracies."""
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


def outcome_record(outcome: AttackOutcome, priors: Sequence[float]) -> dict[str, Any]:
    """Return an attack's outcome as a JSON-able record; rates that cannot be resolved are null.

    For an invalid attack, only the AUC is reported. Intervals of predictive values combine the
    worse ends of both rates, as in `membership_probability`.
    """
    rates = {f"{at.fpr:g}": at for at in outcome.at}
    seen = {name: at for name, at in rates.items() if at.is_shown and outcome.is_valid}
    record: dict[str, Any] = {
        **outcome.plan.settings,
        **outcome.auc.to_record("auc"),
        "n": outcome.auc.n,
        "chance": 0.5,
        "is_valid": outcome.is_valid,
        "tpr_at_fpr": {name: seen[name].tpr.value if name in seen else None for name in rates},
        "resolution_at_fpr": {name: at.resolution for name, at in rates.items()},
        "tpr_at_fpr_ci95": {name: [at.tpr.ci95.low, at.tpr.ci95.high] for name, at in seen.items()},
        "ppv_at_fpr": {
            name: {prior: score.value for prior, score in _predictive_values(at, priors).items()}
            for name, at in seen.items()
        },
        "ppv_at_fpr_ci95": {
            name: {p: [s.ci95.low, s.ci95.high] for p, s in _predictive_values(at, priors).items()}
            for name, at in seen.items()
        },
        **outcome.control.to_record("auc_shuffled"),
    }
    if not outcome.is_valid:
        return record
    if outcome.calibrated:
        record["by_shadow_threshold"] = {
            f"{at.fpr:g}": _rates_at(outcome, at) for at in outcome.calibrated if at.is_shown
        }
    for name in ("accuracy", "advantage"):
        score = getattr(outcome, name)
        if score is not None:
            record |= score.to_record(name)
    return record


def _rates_at(outcome: AttackOutcome, at: AtRate) -> dict[str, float]:
    """Return the threshold, TPR and FPR on the target, by name, at a shadow-model threshold."""
    called, members = outcome.ranking.scores > at.threshold, outcome.ranking.members
    return {
        "threshold": at.threshold,
        "tpr": float(called[members].mean()),
        "fpr": float(called[~members].mean()),
    }


def _predictive_values(at: AtRate, priors: Sequence[float]) -> dict[str, Score]:
    """Return the probability that those called members are members, by prior (as text)."""
    return {f"{prior:.4g}": membership_probability(at, prior) for prior in priors}


def describe_setting(value: Any) -> str:
    """Describe the value of an attack's setting in words.

    Examples
    --------
    >>> describe_setting("modified_entropy"), describe_setting("lira"), describe_setting("mean")
    ('modified entropy', 'of LiRA', 'mean')
    """
    entry = FEATURES.get(str(value))
    if entry is not None:
        return entry.title.lower()
    return {"bavaria": "of BaVarIA", "lira": "of LiRA"}.get(str(value), str(value))
