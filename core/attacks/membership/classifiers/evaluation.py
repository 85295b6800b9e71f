"""Run and score membership attacks on one classifier.

The thresholds of verdicts come from shadow models that take the target's place: they depend neither
on the attacked samples' scores nor on their membership.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.predictability import Predictability, predictability
from leakscope.core.attacks.membership.ranking import Ranking, shuffled, units_are_pure
from leakscope.core.attacks.membership.rates import RATES, AtRate
from leakscope.core.attacks.membership.roc import advantage, auc, best_threshold, tpr_at_fpr
from leakscope.core.errors import InvalidInputError
from leakscope.core.intervals import bootstrap_interval
from leakscope.core.protocols import OnProgress
from leakscope.core.results import Interval, Score
from leakscope.core.units import cluster_ids

N_SHUFFLES = 40
_MOST_TESTED = 4

_FEWEST_ALIKE = 5
"""The number of samples from which a pattern of shadow models gets its own feature."""

_MOST_PATTERNS = 256
_MOST_COUNTS = 65


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
    """Run membership attacks on a classifier's outputs; return one scored outcome per attack.

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
    """Run one attack on a classifier's outputs and return only its AUC, as `evaluate` does.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    ranking = ranked(plan, target, shadows)
    return auc(ranking, seed=seed, n_resamples=n_resamples_for(len(ranking.scores)))


def ranked(plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None) -> Ranking:
    """Run one attack on a classifier's outputs and return only its ranking, without scoring it.

    Raises
    ------
    InvalidInputError
        As `evaluate`.
    """
    return _fit_and_rank(plan, target, shadows)[2]


def _fit_and_rank(
    plan: Plan, target: Outputs, shadows: Shadows | Sequence[Outputs] | None
) -> tuple[ClassifierAttack, Shadows | Sequence[Outputs] | None, Ranking]:
    """Fit an attack and rank the target; return attack, shadow models used and ranking."""
    attack = make_attack(plan.attack, **plan.settings)
    # Other attacks raise an error that says what is missing.
    if CLASSIFIER_ATTACKS[plan.attack].needs == "nothing":
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
    """Run one planned attack on the target and return its outcome with all scores."""
    attack, shadows, ranking = _fit_and_rank(plan, target, shadows)
    n_resamples = n_resamples_for(len(ranking.scores))
    game = shadow_ranking(plan, shadows) if is_calibrated and shadows is not None else None
    decided = _call_members(plan, attack, target, shadows, ranking.scores, game)
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
    """Return the mean AUC over random permutations of a ranking's memberships: the control.

    The mean of 40 permutations, with the range of 95 % of them. Users are permuted as a whole if
    each is of one kind.
    """
    from scipy.stats import rankdata  # slow to import; pages that show results do not need it

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


def _call_members(
    plan: Plan,
    attack: ClassifierAttack,
    target: Outputs,
    shadows: Shadows | Sequence[Outputs] | None,
    scores: NDArray[np.float64],
    game: Ranking | None,
) -> NDArray[np.bool_] | None:
    """Return a mask of those called members by a shadow-model threshold; None without one."""
    if shadows is None or plan.attack == "feature":
        return None
    if hasattr(attack, "decide"):
        decided: NDArray[np.bool_] = attack.decide(target)
        return decided
    threshold = calibrated_threshold(plan, shadows, game) if isinstance(shadows, Shadows) else None
    return None if threshold is None else scores > threshold


def shadow_ranking(plan: Plan, shadows: Shadows | Sequence[Outputs]) -> Ranking | None:
    """Attack shadow models, each in the target's place; return one pooled ranking, or None.

    Up to four do, each scored by the others; their scores are pooled, with users or samples as
    units. With few models, the others hold a sample less often if the tested one does, so that
    thresholds are approximate. A single model is tested against itself if the attack compares no
    models, as in Algorithms 1 to 4 of Shejwalkar et al. (2021). None where the others are too few
    for the attack.
    """
    found = []
    for number, (model, others) in enumerate(_leave_one_out(plan, shadows)):
        attack = make_attack(plan.attack, **plan.settings)
        try:
            ranking = ranking_of(attack.fit(others).scores(model), model, plan.level)
        except InvalidInputError:  # the other models or the tested model lack a side
            continue
        found.append((ranking, _sampling_units(plan, model, shadows, number)))
    if not found:
        return None
    return Ranking(
        np.concatenate([ranking.scores for ranking, _ in found]),
        np.concatenate([ranking.members for ranking, _ in found]),
        [unit for _, units in found for unit in units],
    )


def _leave_one_out(
    plan: Plan, shadows: Shadows | Sequence[Outputs]
) -> Iterator[tuple[Outputs, Any]]:
    """Yield each shadow model (4 at most) to be attacked, with the other shadow models."""
    n = shadows.n_models if isinstance(shadows, Shadows) else len(shadows)
    if n == 1:
        if CLASSIFIER_ATTACKS[plan.attack].needs != "the same samples":
            yield (shadows.model(0) if isinstance(shadows, Shadows) else shadows[0]), shadows
        return
    for number in range(min(n, _MOST_TESTED)):
        if isinstance(shadows, Shadows):
            yield shadows.model(number), shadows.without(number)
        else:
            yield shadows[number], [m for i, m in enumerate(shadows) if i != number]


def _sampling_units(
    plan: Plan, model: Outputs, shadows: Shadows | Sequence[Outputs], number: int
) -> Sequence[Hashable]:
    """Return the sampling unit of each ranked entry: its user, or else the sample itself."""
    if plan.level == "user":
        return users_of(model).names
    if model.users is not None:
        return model.users
    first = 0 if isinstance(shadows, Shadows) else number
    return [(first, i) for i in range(len(model))]


def calibrated_threshold(plan: Plan, shadows: Shadows, game: Ranking | None = None) -> float | None:
    """Attack the shadow models; return the score threshold of the largest advantage, or None.

    None for a single model, or where the others are too few for the attack. `game` is the result
    of `shadow_ranking` for the same arguments, if known.
    """
    if shadows.n_models == 1:
        return None
    ranking = shadow_ranking(plan, shadows) if game is None else game
    return None if ranking is None else best_threshold(ranking.scores, ranking.members)


def shadow_rates(game: Ranking | None) -> tuple[AtRate, ...]:
    """Return threshold and TPR of a shadow ranking at each FPR of RATES; () without a ranking."""
    if game is None:
        return ()
    return tuple(tpr_at_fpr(game, rate) for rate in RATES)


def check_design(target: Outputs, shadows: Shadows, *, seed: int = 0) -> Predictability:
    """Test how well a sample's shadow-model memberships predict its membership in the target.

    Features of a sample are the shadow models that hold it, how many they are, and, where several
    samples share it, the pattern as a whole. Units are users where every model holds all samples
    of a user or none, else samples.

    Parameters
    ----------
    target : Outputs
        n samples.
    shadows : Shadows
        Of the same samples, in the same order.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> inside = rng.random((5, 90)) < 0.5
    >>> answers = np.full((5, 90, 2), 0.5)
    >>> labels = np.zeros(90, dtype=int)
    >>> target = Outputs(answers[0], labels, inside[0])
    >>> check_design(target, Shadows(answers[1:], labels, inside[1:])).is_above_chance
    False
    >>> of_members = Shadows(answers[1:], labels, inside[1:] & inside[0])
    >>> check_design(target, of_members).is_above_chance
    True
    """
    members, inside = target.members, shadows.members
    rows = cluster_ids(target.users, len(target))
    if all(units_are_pure(rows, held) for held in (members, *inside)):
        first = np.unique(rows, return_index=True)[1]
        members, inside = members[first], inside[:, first]
    return predictability(_membership_features(inside), members, seed=seed)


def _membership_features(inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Build non-constant features of each unit from its memberships in the shadow models."""
    counts = inside.sum(axis=0)
    found = [inside.T.astype(np.float64)]
    values = np.unique(counts)
    if len(values) <= _MOST_COUNTS:
        found.append((counts[:, None] == values).astype(np.float64))
    _, which, n_alike = np.unique(inside.T, axis=0, return_inverse=True, return_counts=True)
    common = np.flatnonzero(n_alike >= _FEWEST_ALIKE)
    common = common[np.argsort(-n_alike[common], kind="stable")][:_MOST_PATTERNS]
    found.append((which.ravel()[:, None] == common).astype(np.float64))
    features = np.concatenate(found, axis=1)
    kept: NDArray[np.float64] = features[:, features.std(axis=0) > 0]
    return kept
