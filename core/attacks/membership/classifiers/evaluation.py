"""Attacks on one classifier, scored: what is found, at what rate of false accusations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.calibration import (
    calibrated_threshold,
    played,
    rates_of,
)
from core.attacks.membership.classifiers.design import check_design
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.plans import (
    Plan,
    has_both_kinds_of_users,
    plans,
    ranking_of,
    sides_there,
    usable_of,
)
from core.attacks.membership.classifiers.registry import (
    CLASSIFIER_ATTACKS,
    ClassifierAttack,
    make_attack,
)
from core.attacks.membership.predictability import Predictability
from core.attacks.membership.ranking import are_whole
from core.attacks.membership.roc import (
    RATES,
    AtRate,
    Ranking,
    advantage,
    auc,
    shuffled,
    tpr_at_fpr,
)
from core.intervals import bootstrap_interval
from core.protocols import OnProgress
from core.results import Interval, Score
from core.units import unit_rows

__all__ = [
    "AttackOutcome",
    "Plan",
    "auc_of",
    "calibrated_threshold",
    "control",
    "evaluate",
    "has_both_kinds_of_users",
    "plans",
    "ranked",
    "resamples_of",
    "sides_there",
]

N_SHUFFLES = 40


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
    calibrated : tuple of AtRate
        For verdicts, what shadow models give at `RATES`, with their thresholds; empty without
        them, and where it was not asked for.
    design : Predictability or None
        Of an attack that asks shadow models about the target's own samples, where it was asked
        for: whether the shadow design alone predicts who is a member.
    """

    plan: Plan
    auc: Score
    at: tuple[AtRate, ...]
    control: Score
    accuracy: Score | None
    advantage: Score | None
    ranking: Ranking
    decided: NDArray[np.bool_] | None = None
    calibrated: tuple[AtRate, ...] = ()
    design: Predictability | None = None

    @property
    def is_valid(self) -> bool:
        """Whether what is found can be a leak: False where the shadow design gives it away."""
        return self.design is None or not self.design.is_above_chance


def evaluate(
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None = None,
    *,
    chosen: Sequence[Plan] | None = None,
    seed: int = 0,
    is_calibrated: bool = False,
    is_checked: bool = False,
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
    is_calibrated : bool
        Also find the thresholds of shadow models that verdicts need.
    is_checked : bool
        Also check that the shadow design does not predict who is a member; for models whose
        training sets were not drawn here.
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
        found.append(_run(plan, target, shadows, seed, is_calibrated=is_calibrated))
    if is_checked and isinstance(shadows, Shadows):
        design = check_design(target, shadows, seed=seed)
        found = [
            replace(outcome, design=design)
            if CLASSIFIER_ATTACKS[outcome.plan.attack].needs == "the same samples"
            else outcome
            for outcome in found
        ]
    return found


def auc_of(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None, *, seed: int = 0
) -> Score:
    """Return the AUC of an attack alone, as `evaluate` tells it.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    ranking = ranked(plan, target, shadows)
    return auc(ranking, seed=seed, n_resamples=resamples_of(len(ranking.scores)))


def ranked(plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None) -> Ranking:
    """Return how an attack ranks the target's samples, or its users, and nothing more.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    return _scored(plan, target, shadows)[2]


def _scored(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None
) -> tuple[ClassifierAttack, Shadows | Sequence[Outputs] | None, Ranking]:
    """Return an attack with what it learned from, and how it ranks the target's samples."""
    attack = make_attack(plan.attack, **plan.settings)
    if CLASSIFIER_ATTACKS[plan.attack].needs == "nothing":  # the others say what they lack
        shadows = usable_of(plan.attack, shadows)
    if shadows is not None:
        attack.fit(shadows)
    return attack, shadows, ranking_of(attack.scores(target), target, plan.level)


def _run(
    plan: Plan,
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None,
    seed: int,
    *,
    is_calibrated: bool,
) -> AttackOutcome:
    attack, shadows, ranking = _scored(plan, target, shadows)
    n_resamples = resamples_of(len(ranking.scores))
    game = played(plan, shadows) if is_calibrated and shadows is not None else None
    decided = _decided(plan, attack, target, shadows, ranking.scores, game)
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
        tuple(tpr_at_fpr(ranking, r) for r in RATES),
        control(ranking, seed),
        accuracy,
        gain,
        ranking,
        decided,
        rates_of(game),
    )


def resamples_of(n: int) -> int:
    """Return how many resamples a bootstrap of n draws: fewer of many, whose ends vary less."""
    return int(np.clip(8_000_000 // n, 400, 2000))


def control(ranking: Ranking, seed: int = 0) -> Score:
    """Return the AUC where membership is dealt by lot, to users where each is of one kind.

    The mean of 40 deals, with the range that holds 95 % of them.
    """
    from scipy.stats import rankdata  # takes seconds to import, and pages show what was measured

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
    game: Ranking | None,
) -> NDArray[np.bool_] | None:
    """Return who is called a member, by a threshold of shadow models alone; None without them."""
    if shadows is None or plan.attack == "feature":
        return None
    if hasattr(attack, "decide"):
        decided: NDArray[np.bool_] = attack.decide(target)
        return decided
    threshold = calibrated_threshold(plan, shadows, game) if isinstance(shadows, Shadows) else None
    return None if threshold is None else scores > threshold
