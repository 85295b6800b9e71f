"""Whether the shadow design alone predicts who is a member: then no attack that uses it is valid.

An attack on the target's own samples knows which shadow models hold each sample. If that says
anything of the target's members, the attack scores above chance without a leak: where each model of
a k-fold leaves out another fold, where shadow models are trained on members alone or on others
alone, where each sample is in exactly half of all models, the target counted. Drawing the shadow
models' samples without regard to the target's members is the remedy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.predictability import Predictability, predictability
from core.attacks.membership.ranking import are_whole
from core.units import unit_rows

__all__ = ["check_design"]

_FEWEST_ALIKE = 5
"""Samples from which on a pattern of shadow models has a feature of its own."""

_MOST_PATTERNS = 256
_MOST_COUNTS = 65


def check_design(target: Outputs, shadows: Shadows, *, seed: int = 0) -> Predictability:
    """Return how well which shadow models hold a sample predicts that the target holds it.

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
    members, inside = _units(target, shadows)
    return predictability(_features(inside), members, seed=seed)


def _units(target: Outputs, shadows: Shadows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return who is a member, (n_units,), and whom each shadow model holds, (n_models, n_units)."""
    if target.users is None:
        return target.members, shadows.members
    rows = unit_rows(target.users, len(target))
    if not all(are_whole(rows, held) for held in (target.members, *shadows.members)):
        return target.members, shadows.members
    first = np.unique(rows, return_index=True)[1]
    return target.members[first], shadows.members[:, first]


def _features(inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return what is known of each unit, (n_units, n_features), without constant features."""
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
