"""Calibrated thresholds for verdicts, from shadow models that take the target's place.

The thresholds depend on shadow models alone: not on the attacked samples' scores, nor on their
membership.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.plans import Plan, ranking_of
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS, make_attack
from leakscope.core.attacks.membership.classifiers.users import users_of
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.rates import RATES, AtRate
from leakscope.core.attacks.membership.roc import best_threshold, tpr_at_fpr
from leakscope.core.errors import InvalidInputError

_MOST_TESTED = 4


def shadow_ranking(plan: Plan, shadows: Shadows | Sequence[Outputs]) -> Ranking | None:
    """Rank the samples of shadow models by an attack in which each takes the target's place.

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
        found.append((ranking, _units(plan, model, shadows, number)))
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
    """Yield each shadow model that takes the target's place, with the others."""
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


def _units(
    plan: Plan, model: Outputs, shadows: Shadows | Sequence[Outputs], number: int
) -> Sequence[Hashable]:
    """Return the independent unit of each sample: its user, or the sample itself."""
    if plan.level == "user":
        return users_of(model).names
    if model.users is not None:
        return model.users
    first = 0 if isinstance(shadows, Shadows) else number
    return [(first, i) for i in range(len(model))]


def calibrated_threshold(plan: Plan, shadows: Shadows, game: Ranking | None = None) -> float | None:
    """Return the score threshold of the largest advantage on shadow models in the target's place.

    None for a single model, or where the others are too few for the attack. `game` is the result
    of `shadow_ranking` for the same arguments, if known.
    """
    if shadows.n_models == 1:
        return None
    ranking = shadow_ranking(plan, shadows) if game is None else game
    return None if ranking is None else best_threshold(ranking.scores, ranking.members)


def calibrated_rates(plan: Plan, shadows: Shadows | Sequence[Outputs] | None) -> tuple[AtRate, ...]:
    """Return threshold and true-positive rate at each false-positive rate, from shadow models.

    Empty without shadow models, or where they are too few to take the target's place.
    """
    ranking = None if shadows is None else shadow_ranking(plan, shadows)
    return shadow_rates(ranking)


def shadow_rates(game: Ranking | None) -> tuple[AtRate, ...]:
    """Return threshold and true-positive rate at each false-positive rate of a shadow ranking."""
    if game is None:
        return ()
    return tuple(tpr_at_fpr(game, rate) for rate in RATES)
