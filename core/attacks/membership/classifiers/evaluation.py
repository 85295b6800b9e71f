"""Attacks on one classifier, scored: what is found, at what rate of false accusations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from core.attacks.membership.classifiers.features import FEATURES
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.registry import (
    CLASSIFIER_ATTACKS,
    ClassifierAttack,
    Level,
    make_attack,
)
from core.attacks.membership.classifiers.thresholds import models_of
from core.attacks.membership.classifiers.users import STATISTICS, users_of
from core.attacks.membership.ranking import are_whole
from core.attacks.membership.roc import (
    RATES,
    AtRate,
    Ranking,
    advantage,
    auc,
    best_threshold,
    shuffled,
    tpr_at_fpr,
)
from core.errors import InvalidInputError
from core.metrics import bootstrap_interval
from core.protocols import OnProgress
from core.results import Interval, Score
from core.units import unit_rows

__all__ = [
    "AttackOutcome",
    "Plan",
    "calibrated_threshold",
    "control",
    "evaluate",
    "has_both_kinds_of_users",
    "sides_there",
    "plans",
    "resamples_of",
]

N_SHUFFLES = 40
_MOST_PLAYED = 4


@dataclass(frozen=True)
class Plan:
    """An attack to run: its name in the registry and its settings."""

    attack: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """Whether it is of samples or of users."""
        return CLASSIFIER_ATTACKS[self.attack].level

    @property
    def name(self) -> str:
        """Name and settings in one word, such as `threshold loss`."""
        return " ".join([self.attack, *map(str, self.settings.values())])


@dataclass(frozen=True)
class AttackOutcome:
    """What an attack reached.

    Attributes
    ----------
    plan : Plan
    auc : Score
    at : tuple of AtRate
        True-positive rates at `RATES` of false positives.
    control : Score
        AUC where membership was dealt by lot; has to be about one half.
    accuracy, advantage : Score or None
        Of decisions by thresholds that shadow models gave; None without shadow models.
    ranking : Ranking
        Scores and membership, for curves and for comparing two attacks.
    decided : ndarray of bool or None
        Who is called a member by these thresholds: samples, or users in the order of the alphabet.
    """

    plan: Plan
    auc: Score
    at: tuple[AtRate, ...]
    control: Score
    accuracy: Score | None
    advantage: Score | None
    ranking: Ranking
    decided: NDArray[np.bool_] | None = None


def plans(
    shadows: Shadows | Sequence[Outputs] | None, *, has_users: bool, every_statistic: bool = False
) -> list[Plan]:
    """Return the attacks that can be run: all that the registry has, with each feature.

    Parameters
    ----------
    shadows : Shadows, list of Outputs or None
        Aligned with the target, not aligned, or none.
    has_users : bool
        Whether samples tell their user.
    every_statistic : bool
        Whether users are ranked by minimum, maximum and variance, too, not by the mean alone.
    """
    found = []
    for name, entry in CLASSIFIER_ATTACKS.items():
        usable = _usable(name, shadows)
        if not entry.can_use(usable) or (entry.level == "user" and not has_users):
            continue
        chosen: list[dict[str, Any]] = [{}]
        if entry.has_feature:
            chosen = [{"feature": feature} for feature in FEATURES]
        if name == "user_statistic":
            kinds = STATISTICS if every_statistic else STATISTICS[:1]
            chosen = [{**each, "statistic": kind} for each in chosen for kind in kinds]
        if name == "user_likelihood":
            chosen = [{"of": "bavaria"}, {"of": "lira"}]
        found += [Plan(name, settings) for settings in chosen]
    return found


def evaluate(
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None = None,
    *,
    chosen: Sequence[Plan] | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> list[AttackOutcome]:
    """Run attacks on a classifier and score them.

    Parameters
    ----------
    target : Outputs
        The classifier under attack. Who its members are is used for scoring alone.
    shadows : Shadows, list of Outputs or None
        The attacker's own models: `Shadows` where they answered for the target's samples.
    chosen : list of Plan, optional
        All that can be run by default.
    seed : int
        Of bootstraps and of the control.
    on_progress : callable, optional
        Told after each attack.

    Raises
    ------
    InvalidInputError
        All samples, or all users, are of one kind; or shadow models that an attack cannot use.
    """
    if chosen is None:
        chosen = plans(shadows, has_users=has_both_kinds_of_users(target))
    found = []
    for i, plan in enumerate(chosen):
        if on_progress is not None:
            on_progress(i / len(chosen), plan.name)
        found.append(_run(plan, target, shadows, seed))
    return found


def has_both_kinds_of_users(*models: Outputs) -> bool:
    """Return whether samples tell their user, and some users are members and some are not."""
    if any(model.users is None for model in models):
        return False
    members = np.concatenate([users_of(model).members for model in models])
    return bool(members.any() and not members.all())


def _usable(
    attack: str, shadows: Shadows | Sequence[Outputs] | None
) -> Shadows | Sequence[Outputs] | None:
    """Return the shadow models if the attack can learn from what they were trained on."""
    if shadows is None:
        return None
    entry = CLASSIFIER_ATTACKS[attack]
    has_inside, has_outside = sides_there(shadows)
    if not has_outside or (entry.asks_members and not has_inside):
        return None
    if entry.learns_from_users and not has_both_kinds_of_users(*models_of(shadows)):
        return None
    return shadows


def sides_there(shadows: Shadows | Sequence[Outputs]) -> tuple[bool, bool]:
    """Return whether any shadow model was trained on any of its samples, and not on another."""
    each = [shadows.members] if isinstance(shadows, Shadows) else [m.members for m in shadows]
    return any(bool(m.any()) for m in each), any(not m.all() for m in each)


def _run(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None, seed: int
) -> AttackOutcome:
    attack = make_attack(plan.attack, **plan.settings)
    if CLASSIFIER_ATTACKS[plan.attack].needs == "nothing":  # the others say what they lack
        shadows = _usable(plan.attack, shadows)
    if shadows is not None:
        attack.fit(shadows)
    ranking = _ranking(attack.scores(target), target, plan.level)
    n_resamples = resamples_of(len(ranking.scores))
    decided = _decided(plan, attack, target, shadows, ranking.scores)
    accuracy = gain = None
    if decided is not None:
        right = (decided == ranking.members).astype(np.float64)
        inside = ranking.members.mean()
        accuracy = Score(
            float(right.mean()),
            bootstrap_interval(right, groups=ranking.units, seed=seed, n_resamples=n_resamples),
            len(right),
            float(max(inside, 1 - inside)),
        )
        gain = advantage(
            decided, ranking.members, ranking.units, seed=seed, n_resamples=n_resamples
        )
    return AttackOutcome(
        plan,
        auc(ranking, seed=seed, n_resamples=n_resamples),
        tuple(tpr_at_fpr(ranking, r, seed=seed, n_resamples=n_resamples) for r in RATES),
        control(ranking, seed),
        accuracy,
        gain,
        ranking,
        decided,
    )


def _ranking(scores: NDArray[np.float64], outputs: Outputs, level: Level) -> Ranking:
    """Return scores beside membership; samples of one user are not independent."""
    if level == "user":
        return Ranking(scores, users_of(outputs).members)
    return Ranking(scores, outputs.members, outputs.users)


def resamples_of(n: int) -> int:
    """Return how many resamples a bootstrap of n draws: fewer of many, whose ends vary less."""
    return int(np.clip(8_000_000 // n, 400, 2000))


def control(ranking: Ranking, seed: int = 0) -> Score:
    """Return the AUC where membership is dealt by lot, to users where each is of one kind.

    The mean of 40 deals, with the range that holds 95 % of them.
    """
    ranks = rankdata(ranking.scores)
    rows = unit_rows(ranking.units, len(ranking.members))
    units = ranking.units if are_whole(rows, ranking.members) else None
    found = []
    for deal in range(N_SHUFFLES):
        dealt = shuffled(ranking.members, units, seed=1000 * seed + deal)
        n, n_dealt = len(dealt), int(dealt.sum())
        above = ranks[dealt].sum() - n_dealt * (n_dealt + 1) / 2
        found.append(above / (n_dealt * (n - n_dealt)))
    low, high = np.quantile(found, [0.025, 0.975])
    return Score(float(np.mean(found)), Interval(float(low), float(high)), len(ranks), 0.5)


def _decided(
    plan: Plan,
    attack: ClassifierAttack,
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None,
    scores: NDArray[np.float64],
) -> NDArray[np.bool_] | None:
    """Return who is called a member, by a threshold of shadow models alone; None without them."""
    if shadows is None or plan.attack == "feature":
        return None
    if hasattr(attack, "decide"):
        decided: NDArray[np.bool_] = attack.decide(target)
        return decided
    threshold = calibrated_threshold(plan, shadows) if isinstance(shadows, Shadows) else None
    return None if threshold is None else scores > threshold


def calibrated_threshold(plan: Plan, shadows: Shadows) -> float | None:
    """Return the threshold that gains most where shadow models play the target.

    Up to four play, each scored by the others; their scores are taken together. With few, the
    others hold a sample less often where the one that plays does, so that the threshold is only
    about right. None where one model is alone, or the others are not enough for the attack.
    """
    scores, members = [], []
    for played in range(min(shadows.n_models, _MOST_PLAYED) if shadows.n_models > 1 else 0):
        model = shadows.model(played)
        attack = make_attack(plan.attack, **plan.settings)
        try:
            ranking = _ranking(attack.fit(shadows.without(played)).scores(model), model, plan.level)
        except InvalidInputError:  # the others lack a side, or the one that plays does
            continue
        scores.append(ranking.scores)
        members.append(ranking.members)
    if not scores:
        return None
    return best_threshold(np.concatenate(scores), np.concatenate(members))
