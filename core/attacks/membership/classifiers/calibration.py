"""Thresholds for verdicts: shadow models play the target, of which nothing but scores is used.

Whose membership is asked for takes no part in what decides it: neither the samples under attack nor
who of them is a member.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.plans import Plan, ranking_of
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS, make_attack
from core.attacks.membership.classifiers.users import users_of
from core.attacks.membership.ranking import Ranking
from core.attacks.membership.rates import RATES, AtRate
from core.attacks.membership.roc import best_threshold, tpr_at_fpr
from core.errors import InvalidInputError

__all__ = ["calibrated_rates", "calibrated_threshold", "played", "rates_of"]

_MOST_PLAYED = 4


def played(plan: Plan, shadows: Shadows | Sequence[Outputs]) -> Ranking | None:
    """Return how an attack ranks the samples of shadow models that play the target.

    Up to four play, each scored by the others; their scores are taken together, units being the
    users, or samples. With few, the others hold a sample less often where the one that plays does,
    so that thresholds are only about right. A model that is alone plays against itself where
    the attack compares no models, as in Algorithms 1 to 4 of Shejwalkar et al. (2021). None where
    the others are not enough for the attack.
    """
    found = []
    for number, (model, others) in enumerate(_casts(plan, shadows)):
        attack = make_attack(plan.attack, **plan.settings)
        try:
            ranking = ranking_of(attack.fit(others).scores(model), model, plan.level)
        except InvalidInputError:  # the others lack a side, or the one that plays does
            continue
        found.append((ranking, _units(plan, model, shadows, number)))
    if not found:
        return None
    return Ranking(
        np.concatenate([ranking.scores for ranking, _ in found]),
        np.concatenate([ranking.members for ranking, _ in found]),
        [unit for _, units in found for unit in units],
    )


def _casts(plan: Plan, shadows: Shadows | Sequence[Outputs]) -> Iterator[tuple[Outputs, Any]]:
    """Yield models that play the target, each with those that the attack learns from."""
    n = shadows.n_models if isinstance(shadows, Shadows) else len(shadows)
    if n == 1:
        if CLASSIFIER_ATTACKS[plan.attack].needs != "the same samples":
            yield (shadows.model(0) if isinstance(shadows, Shadows) else shadows[0]), shadows
        return
    for number in range(min(n, _MOST_PLAYED)):
        if isinstance(shadows, Shadows):
            yield shadows.model(number), shadows.without(number)
        else:
            yield shadows[number], [m for i, m in enumerate(shadows) if i != number]


def _units(
    plan: Plan, model: Outputs, shadows: Shadows | Sequence[Outputs], number: int
) -> Sequence[Hashable]:
    """Return what is independent of each other: users, else samples, which aligned models share."""
    if plan.level == "user":
        return users_of(model).names
    if model.users is not None:
        return model.users
    first = 0 if isinstance(shadows, Shadows) else number
    return [(first, i) for i in range(len(model))]


def calibrated_threshold(plan: Plan, shadows: Shadows, game: Ranking | None = None) -> float | None:
    """Return the threshold that gains most where shadow models play the target.

    None where one model is alone, or the others are not enough for the attack. `game` is what
    `played` returned of the same, where it did already.
    """
    if shadows.n_models == 1:
        return None
    ranking = played(plan, shadows) if game is None else game
    return None if ranking is None else best_threshold(ranking.scores, ranking.members)


def calibrated_rates(plan: Plan, shadows: Shadows | Sequence[Outputs] | None) -> tuple[AtRate, ...]:
    """Return what shadow models give at each rate of false accusations, its threshold with it.

    Empty without shadow models, or where they are not enough to play the target.
    """
    ranking = None if shadows is None else played(plan, shadows)
    return rates_of(ranking)


def rates_of(game: Ranking | None) -> tuple[AtRate, ...]:
    """Return the same of what `played` returned."""
    if game is None:
        return ()
    return tuple(tpr_at_fpr(game, rate) for rate in RATES)
