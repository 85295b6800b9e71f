"""Run and score membership attacks on one classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.calibration import (
    calibrated_threshold,
    shadow_ranking,
    shadow_rates,
)
from leakscope.core.attacks.membership.classifiers.design import check_design
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.plans import (
    Plan,
    has_both_kinds_of_users,
    plans,
    ranking_of,
    usable_shadows,
)
from leakscope.core.attacks.membership.classifiers.registry import (
    CLASSIFIER_ATTACKS,
    ClassifierAttack,
    make_attack,
)
from leakscope.core.attacks.membership.predictability import Predictability
from leakscope.core.attacks.membership.ranking import Ranking, shuffled, units_are_pure
from leakscope.core.attacks.membership.rates import RATES, AtRate
from leakscope.core.attacks.membership.roc import advantage, auc, tpr_at_fpr
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import OnProgress
from leakscope.core.results import Interval, Score
from leakscope.core.units import cluster_ids

N_SHUFFLES = 40


@dataclass(frozen=True)
class AttackOutcome:
    """The scores of one attack: AUC, rates, control and decisions.

    Attributes
    ----------
    plan : Plan
    auc : Score
    at : tuple of AtRate
        True-positive rates at `RATES` of false positives.
    control : Score
        AUC under randomly permuted membership; has to be about one half.
    accuracy, advantage : Score or None
        Of decisions by thresholds from shadow models; None without shadow models.
    ranking : Ranking
        Scores and membership, for curves and for comparing two attacks.
    decided : ndarray of bool or None
        Who is called a member by these thresholds: samples, or users in alphabetical order.
    calibrated : tuple of AtRate
        For verdicts: rates and thresholds of shadow models at `RATES`; empty without shadow models,
        and where not requested.
    design : Predictability or None
        For an attack that queries shadow models with the target's own samples, where requested:
        whether the shadow design alone predicts membership.
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
        """Whether the result can be a leak: False if the shadow design predicts membership."""
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
    """Run membership attacks on a classifier and score them.

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
        Also compute the thresholds of shadow models that verdicts need.
    is_checked : bool
        Also test whether the shadow design predicts membership; for models whose training sets were
        not drawn here.
    on_progress : callable, optional
        Called before each attack.

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
        found.append(_run_plan(plan, target, shadows, seed, is_calibrated=is_calibrated))
    if is_checked and isinstance(shadows, Shadows):
        design = check_design(target, shadows, seed=seed)
        found = [
            replace(outcome, design=design)
            if CLASSIFIER_ATTACKS[outcome.plan.attack].needs == "the same samples"
            else outcome
            for outcome in found
        ]
    return found


def attack_auc(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None, *, seed: int = 0
) -> Score:
    """Return only the AUC of an attack, as `evaluate` computes it.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    ranking = ranked(plan, target, shadows)
    return auc(ranking, seed=seed, n_resamples=n_resamples_for(len(ranking.scores)))


def ranked(plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None) -> Ranking:
    """Return only an attack's ranking of the target's samples or users.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    return _fit_and_rank(plan, target, shadows)[2]


def _fit_and_rank(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None
) -> tuple[ClassifierAttack, Shadows | Sequence[Outputs] | None, Ranking]:
    """Fit an attack on usable shadow models and rank the target; return all three."""
    attack = make_attack(plan.attack, **plan.settings)
    if (
        CLASSIFIER_ATTACKS[plan.attack].needs == "nothing"
    ):  # other attacks raise an error that says what is missing
        shadows = usable_shadows(plan.attack, shadows)
    if shadows is not None:
        attack.fit(shadows)
    return attack, shadows, ranking_of(attack.scores(target), target, plan.level)


def _run_plan(
    plan: Plan,
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None,
    seed: int,
    *,
    is_calibrated: bool,
) -> AttackOutcome:
    """Run one attack and compute all of its scores."""
    attack, shadows, ranking = _fit_and_rank(plan, target, shadows)
    n_resamples = n_resamples_for(len(ranking.scores))
    game = shadow_ranking(plan, shadows) if is_calibrated and shadows is not None else None
    decided = _decisions(plan, attack, target, shadows, ranking.scores, game)
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
        shadow_rates(game),
    )


def n_resamples_for(n: int) -> int:
    """Return the number of bootstrap resamples for n samples: fewer for more samples."""
    return int(np.clip(8_000_000 // n, 400, 2000))


def control(ranking: Ranking, seed: int = 0) -> Score:
    """Return the AUC under random permutations of membership: the control.

    The mean of 40 permutations, with the range of 95 % of them. Users are permuted as a whole if
    each is of one kind.
    """
    from scipy.stats import (
        rankdata,
    )  # slow to import, and pages that only show results do not need it

    ranks = rankdata(ranking.scores)
    rows = cluster_ids(ranking.units, len(ranking.members))
    units = ranking.units if units_are_pure(rows, ranking.members) else None
    found = []
    for number in range(N_SHUFFLES):
        permuted = shuffled(ranking.members, units, seed=1000 * seed + number)
        n, n_inside = len(permuted), int(permuted.sum())
        above = ranks[permuted].sum() - n_inside * (n_inside + 1) / 2
        found.append(above / (n_inside * (n - n_inside)))
    low, high = np.quantile(found, [0.025, 0.975])
    return Score(float(np.mean(found)), Interval(float(low), float(high)), len(ranks), 0.5)


def _decisions(
    plan: Plan,
    attack: ClassifierAttack,
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None,
    scores: NDArray[np.float64],
    game: Ranking | None,
) -> NDArray[np.bool_] | None:
    """Return who is called a member by a threshold from shadow models; None without them."""
    if shadows is None or plan.attack == "feature":
        return None
    if hasattr(attack, "decide"):
        decided: NDArray[np.bool_] = attack.decide(target)
        return decided
    threshold = calibrated_threshold(plan, shadows, game) if isinstance(shadows, Shadows) else None
    return None if threshold is None else scores > threshold
