"""Which attacks on a classifier can be run, and how one ranks samples or users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.features import FEATURES
from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS, Level
from core.attacks.membership.classifiers.thresholds import models_of
from core.attacks.membership.classifiers.users import STATISTICS, users_of
from core.attacks.membership.ranking import Ranking

__all__ = [
    "Plan",
    "has_both_kinds_of_users",
    "plans",
    "ranking_of",
    "sides_there",
    "usable_of",
]


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
        usable = usable_of(name, shadows)
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


def has_both_kinds_of_users(*models: Outputs) -> bool:
    """Return whether samples tell their user, and some users are members and some are not."""
    if any(model.users is None for model in models):
        return False
    members = np.concatenate([users_of(model).members for model in models])
    return bool(members.any() and not members.all())


def usable_of(
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


def ranking_of(scores: NDArray[np.float64], outputs: Outputs, level: Level) -> Ranking:
    """Return scores beside membership; samples of one user are not independent."""
    if level == "user":
        return Ranking(scores, users_of(outputs).members)
    return Ranking(scores, outputs.members, outputs.users)
