"""Plans of attacks on a classifier: which can be run, on which shadow models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import FEATURES
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.classifiers.registry import CLASSIFIER_ATTACKS, Level
from leakscope.core.attacks.membership.classifiers.thresholds import shadow_outputs
from leakscope.core.attacks.membership.classifiers.users import STATISTICS, users_of
from leakscope.core.attacks.membership.ranking import Ranking


@dataclass(frozen=True)
class Plan:
    """An attack to run: its name in the registry and its settings."""

    attack: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """What the attack ranks: "sample" or "user"."""
        return CLASSIFIER_ATTACKS[self.attack].level

    @property
    def name(self) -> str:
        """The attack's name and settings as a label, such as `threshold loss`."""
        return " ".join([self.attack, *map(str, self.settings.values())])


def plans(
    shadows: Shadows | Sequence[Outputs] | None, *, has_users: bool, every_statistic: bool = False
) -> list[Plan]:
    """List a plan for each registered attack that the shadow models allow, and for each feature.

    Parameters
    ----------
    shadows : Shadows, list of Outputs or None
        Aligned with the target, not aligned, or none.
    has_users : bool
        Whether the samples' users are known.
    every_statistic : bool
        Whether users are also ranked by minimum, maximum and variance, not only by the mean.
    """
    found = []
    for name, entry in CLASSIFIER_ATTACKS.items():
        usable = usable_shadows(name, shadows)
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
    """Return whether all outputs name users, and both members and non-members occur."""
    if any(model.users is None for model in models):
        return False
    members = np.concatenate([users_of(model).members for model in models])
    return bool(members.any() and not members.all())


def usable_shadows(
    attack: str, shadows: Shadows | Sequence[Outputs] | None
) -> Shadows | Sequence[Outputs] | None:
    """Return the shadow models unchanged if the attack can learn from them, else None."""
    if shadows is None:
        return None
    entry = CLASSIFIER_ATTACKS[attack]
    has_inside, has_outside = available_sides(shadows)
    if not has_outside or (entry.asks_members and not has_inside):
        return None
    if entry.learns_from_users and not has_both_kinds_of_users(*shadow_outputs(shadows)):
        return None
    return shadows


def available_sides(shadows: Shadows | Sequence[Outputs]) -> tuple[bool, bool]:
    """Return whether any shadow model has IN samples, and whether any has OUT samples."""
    each = [shadows.members] if isinstance(shadows, Shadows) else [m.members for m in shadows]
    return any(bool(m.any()) for m in each), any(not m.all() for m in each)


def ranking_of(scores: NDArray[np.float64], outputs: Outputs, level: Level) -> Ranking:
    """Build a ranking from scores: of samples, with their users as units, or of users."""
    if level == "user":
        return Ranking(scores, users_of(outputs).members)
    return Ranking(scores, outputs.members, outputs.users)
