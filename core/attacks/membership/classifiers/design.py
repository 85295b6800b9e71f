"""Test whether the shadow design alone predicts membership, which makes attacks invalid.

An attack on the target's own samples knows which shadow models hold each sample. If that correlates
with the target's members, the attack scores above chance without a leak. Examples: each model of a
k-fold leaves out another fold, shadow models are trained on members alone or on others alone, or
each sample is in exactly half of all models including the target. The remedy is to draw the shadow
models' samples independently of the target's members.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.attacks.membership.predictability import Predictability, predictability
from leakscope.core.attacks.membership.ranking import units_are_pure
from leakscope.core.units import cluster_ids

_FEWEST_ALIKE = 5
"""The number of samples from which a pattern of shadow models gets its own feature."""

_MOST_PATTERNS = 256
_MOST_COUNTS = 65


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
    members, inside = _membership_of_units(target, shadows)
    return predictability(_membership_features(inside), members, seed=seed)


def _membership_of_units(
    target: Outputs, shadows: Shadows
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return units' memberships in the target, (n,), and in each shadow model, (n_models, n)."""
    if target.users is None:
        return target.members, shadows.members
    rows = cluster_ids(target.users, len(target))
    if not all(units_are_pure(rows, held) for held in (target.members, *shadows.members)):
        return target.members, shadows.members
    first = np.unique(rows, return_index=True)[1]
    return target.members[first], shadows.members[:, first]


def _membership_features(inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the non-constant features of units from their memberships in shadow models."""
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
