"""The robust attack: whether the target stands out more on this sample than on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.aligned import Aligned
from core.attacks.membership.classifiers.features import FLOOR, confidence
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.sides import Sides, sides_of
from core.attacks.membership.ranking import Ranking
from core.attacks.membership.roc import auc
from core.errors import InvalidInputError
from core.specs import setting, validate_settings

__all__ = ["RMIA", "offline_mean", "online_mean", "share_below", "tuned_a"]

TRIED = tuple(round(0.1 * i, 1) for i in range(11))
"""Values of `a` that are tried."""

UNTUNED = 0.5
"""`a` where no shadow model can play the target, as there is one alone."""

_MOST_TARGETS = 4
_Array = NDArray[np.float64]


def online_mean(sides: Sides) -> _Array:
    """Return p(x) = ½ (mean of p over models trained on x + mean over the others).

    Implements Zarifzadeh et al. (2024), where half of the reference models
    hold x; so weighted, it does not matter how many do. Differs from the paper: a side without
    a model is the other's mean, shifted as on average, within (0, 1].
    """
    inside, outside = _bounded(sides.inside_mean()), _bounded(sides.outside_mean())
    return (inside + outside) / 2


def offline_mean(sides: Sides, a: float) -> _Array:
    """Return p(x) ≈ ½ [(1 + a) · p_out(x) + (1 − a)], of models that were not trained on x.

    Implements Zarifzadeh et al. (2024): of a model trained on x, p is about
    a · p_out(x) + (1 − a). Differs from the paper: as `online_mean`.
    """
    return _mixed(sides.outside_mean(), a)


def _mixed(outside: _Array, a: float) -> _Array:
    mixed: _Array = 0.5 * ((1 + a) * _bounded(outside) + (1 - a))
    return mixed


def _bounded(probabilities: _Array) -> _Array:
    return np.clip(probabilities, FLOOR, 1.0)


def share_below(
    ratios: _Array, gamma: float, population: NDArray[np.bool_] | None = None
) -> _Array:
    """Return of each sample the share of others z with ratio(x) / ratio(z) ≥ γ.

    Implements the score of Zarifzadeh et al. (2024), ratio(x) = p_θ(x) / p(x). No sample counts
    against itself. Differs from the paper, whose z are drawn from the population: here they are by
    default the attacked samples themselves, members of the target among them. As all samples are
    held against the same population, their order is that of the ratios, and γ > 1 only makes ties.

    Parameters
    ----------
    ratios : ndarray (n,)
    gamma : float
        At least 1.
    population : ndarray of bool (n,), optional
        Samples to hold the others against; by default all, which are those under attack. Who of
        them is a member is not used.

    Examples
    --------
    >>> share_below(np.array([1.0, 2.0, 3.0]), 1.5).tolist()
    [0.0, 0.5, 1.0]
    """
    chosen = np.ones(len(ratios), dtype=bool) if population is None else population
    ranked = np.sort(ratios[chosen] * gamma)
    below = np.searchsorted(ranked, ratios, side="right")
    is_counted = chosen & (ratios * gamma <= ratios)
    n_others = int(chosen.sum()) - chosen.astype(np.int64)
    if n_others.min() < 1:
        raise InvalidInputError("RMIA holds a sample against others: give at least two samples.")
    share: _Array = (below - is_counted) / n_others
    return share


def tuned_a(values: _Array, members: NDArray[np.bool_]) -> float:
    """Return the `a` with which one shadow model's members are told best by the others.

    The mean AUC over up to four shadow models that play the target; of equals, the least. 0.5
    where there is one shadow model alone.

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
        sides = sides_of(values[others], members[others])
        known = sides.outside.has
        mine = members[played][known]
        if mine.all() or not mine.any():
            continue
        for i, a in enumerate(TRIED):
            ratios = _bounded(values[played]) / _mixed(sides.outside.mean, a)
            found[i] += auc(Ranking(ratios[known], mine), n_resamples=1).value
        n_played += 1
    return TRIED[int(np.argmax(found))] if n_played else UNTUNED


@dataclass
class RMIA(Aligned):
    """The robust membership inference attack of Zarifzadeh et al. (2024)."""

    is_online: bool = setting(True, "ask models that were trained on the sample, too")
    gamma: float = setting(
        1.0, "by how much a sample has to stand out from another", low=1, high=1000
    )
    a: float | None = setting(
        None, "of the offline attack; tuned on the shadow models by default", low=0, high=1
    )

    def fit(self, shadows: Shadows, population: NDArray[np.bool_] | None = None) -> RMIA:
        """Take what the shadow models say of each sample.

        Parameters
        ----------
        population : ndarray of bool (n,), optional
            Samples to hold the others against; all by default.

        Raises
        ------
        InvalidInputError
            They were trained on all samples or, online, on none; γ or a is out of its range.
        """
        validate_settings(self)
        values = self.confidences_of(shadows)
        sides = sides_of(values, shadows.members, shadows.labels)
        if self.is_online:
            self.mean_ = online_mean(sides)
        else:
            self.a_ = tuned_a(values, shadows.members) if self.a is None else self.a
            self.mean_ = offline_mean(sides, self.a_)
        self.labels_, self.population_ = shadows.labels, population
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return the share of others that each sample stands out from, in [0, 1].

        Raises
        ------
        NotFittedError, InvalidInputError
            As `Aligned.check`.
        """
        self.check(target)
        ratios = _bounded(confidence(target.probabilities, target.labels)) / self.mean_
        return share_below(ratios, self.gamma, self.population_)
