"""RMIA: whether the target's probability ratio is larger for a sample than for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import FLOOR, confidence
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.shadow_model_attack import (
    ShadowModelAttack,
    Sides,
    split_in_out,
)
from leakscope.core.attacks.membership.ranking import Ranking
from leakscope.core.attacks.membership.roc import auc
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import setting, validate_settings

TRIED = tuple(round(0.1 * i, 1) for i in range(11))
"""Values of `a` tried in tuning."""

UNTUNED = 0.5
"""`a` for a single shadow model, which cannot be tuned."""

_MOST_TARGETS = 4
_Array = NDArray[np.float64]


def online_mean(sides: Sides) -> _Array:
    """Return each sample's online p(x) = ½ (mean of p over models trained on x + over others).

    Implements Zarifzadeh et al. (2024), where half of the reference models
    hold x; so weighted, it does not matter how many do. Differs from the paper: a side without
    a model is the other's mean, shifted as on average, within (0, 1].
    """
    inside, outside = _clip(sides.inside_mean()), _clip(sides.outside_mean())
    return (inside + outside) / 2


def offline_mean(sides: Sides, a: float) -> _Array:
    """Return each sample's offline p(x) ≈ ½ [(1 + a) · p_out(x) + (1 − a)], from OUT models.

    Implements Zarifzadeh et al. (2024): of a model trained on x, p is about
    a · p_out(x) + (1 − a). Differs from the paper: as `online_mean`.
    """
    return _approximate_offline(sides.outside_mean(), a)


def _approximate_offline(outside: _Array, a: float) -> _Array:
    """Return ½ [(1 + a) · p_out + (1 − a)] of each sample, with p_out clipped."""
    mixed: _Array = 0.5 * ((1 + a) * _clip(outside) + (1 - a))
    return mixed


def _clip(probabilities: _Array) -> _Array:
    """Clip probabilities to [FLOOR, 1]."""
    return np.clip(probabilities, FLOOR, 1.0)


def rmia_scores(
    ratios: _Array, gamma: float, population: NDArray[np.bool_] | None = None
) -> _Array:
    """Return each sample's RMIA score: the share of the others with at most 1/γ of its ratio.

    Implements the score of Zarifzadeh et al. (2024), ratio(x) = p_θ(x) / p(x). No sample counts
    against itself. Differs from the paper, whose z are drawn from the population: here they are by
    default the attacked samples themselves, members of the target among them. As all samples are
    compared with the same population, their order is that of the ratios, and γ > 1 only adds ties.

    Parameters
    ----------
    ratios : ndarray (n,)
    gamma : float
        At least 1.
    population : ndarray of bool (n,), optional
        The reference samples z; by default all, which are those under attack. Their membership is
        not used.

    Examples
    --------
    >>> rmia_scores(np.array([1.0, 2.0, 3.0]), 1.5).tolist()
    [0.0, 0.5, 1.0]
    """
    chosen = np.ones(len(ratios), dtype=bool) if population is None else population
    ranked = np.sort(ratios[chosen] * gamma)
    below = np.searchsorted(ranked, ratios, side="right")
    is_counted = chosen & (ratios * gamma <= ratios)
    n_others = int(chosen.sum()) - chosen.astype(np.int64)
    if n_others.min() < 1:
        raise InvalidInputError("RMIA compares a sample with others. Give at least two samples.")
    share: _Array = (below - is_counted) / n_others
    return share


def tune_a(values: _Array, members: NDArray[np.bool_]) -> float:
    """Choose RMIA's offline `a` with the best AUC when shadow models take the target's place.

    The mean AUC over up to four shadow models, each attacked by the others; ties go to the least
    `a`. 0.5 for a single shadow model.

    Parameters
    ----------
    values : ndarray (n_models, n)
        Probability of the true class.
    members : ndarray of bool (n_models, n)
    """
    found = np.zeros(len(TRIED))
    n_played = 0
    for played in range(min(len(values), _MOST_TARGETS)):
        others = np.arange(len(values)) != played
        sides = split_in_out(values[others], members[others])
        known = sides.outside.has
        mine = members[played][known]
        if mine.all() or not mine.any():
            continue
        for i, a in enumerate(TRIED):
            ratios = _clip(values[played]) / _approximate_offline(sides.outside.mean, a)
            found[i] += auc(Ranking(ratios[known], mine), n_resamples=1).value
        n_played += 1
    return TRIED[int(np.argmax(found))] if n_played else UNTUNED


@dataclass
class RMIA(ShadowModelAttack):
    """The robust membership inference attack of Zarifzadeh et al. (2024)."""

    is_online: bool = setting(True, "also use models trained on the sample")
    gamma: float = setting(1.0, "the ratio by which a sample must exceed another", low=1, high=1000)
    a: float | None = setting(
        None, "of the offline attack; by default tuned on the shadow models", low=0, high=1
    )

    def fit(self, shadows: Shadows, population: NDArray[np.bool_] | None = None) -> RMIA:
        """Compute the reference probability p(x) of each sample from shadow models.

        Parameters
        ----------
        population : ndarray of bool (n,), optional
            The reference samples; all by default.

        Raises
        ------
        InvalidInputError
            They were trained on all samples or, online, on none; γ or a is out of its range.
        """
        validate_settings(self)
        values = self.confidences_of(shadows)
        sides = split_in_out(values, shadows.members, shadows.labels)
        if self.is_online:
            self.mean_ = online_mean(sides)
        else:
            self.a_ = tune_a(values, shadows.members) if self.a is None else self.a
            self.mean_ = offline_mean(sides, self.a_)
        self.labels_, self.population_ = shadows.labels, population
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return RMIA's score of each target sample, in [0, 1].

        Raises
        ------
        NotFittedError, InvalidInputError
            As `ShadowModelAttack.check`.
        """
        self.check(target)
        ratios = _clip(confidence(target.probabilities, target.labels)) / self.mean_
        return rmia_scores(ratios, self.gamma, self.population_)
