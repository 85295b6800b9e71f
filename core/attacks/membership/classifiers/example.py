"""A classifier that does not exist: made-up answers, to see what attacks make of answers at all."""

from __future__ import annotations

import numpy as np

from core.attacks.membership.classifiers.outputs import Outputs, Shadows
from core.attacks.membership.classifiers.probabilities_file import OwnOutputs

__all__ = ["EXAMPLE_NOTE", "simulated_outputs"]

EXAMPLE_NOTE = (
    "every number comes of a random generator: no classifier was trained and no text was read"
)

_CLASSES = ("sport", "politics", "music")
_SPREAD = 1.0
"""How far samples differ in how easy they are."""
_NOISE = 0.4
"""How far two classifiers differ on one sample."""
_GAIN = 0.6
"""How much surer a classifier is of what it was trained on, in logits."""


def simulated_outputs(
    n_users: int = 240, n_each: int = 5, n_shadows: int = 4, *, seed: int = 0
) -> OwnOutputs:
    """Return what a classifier and its shadows might answer, each trained on half of the users.

    The logit of the true class is how easy the sample is, some noise, and a gain where the
    classifier was trained on it.

    Examples
    --------
    >>> own = simulated_outputs(10, 2, 2)
    >>> len(own.target), own.target.n_classes, own.shadows.n_models
    (20, 3, 2)
    """
    rng = np.random.default_rng([seed, 21])
    n = n_users * n_each
    labels = rng.integers(0, len(_CLASSES), n)
    ease = rng.normal(1.0, _SPREAD, n)
    users = tuple(f"made-up user {1 + i // n_each}" for i in range(n))
    models = []
    for _ in range(n_shadows + 1):
        inside = rng.permutation(np.arange(n_users) < n_users // 2)
        members = np.repeat(inside, n_each)
        logits = rng.normal(0, _NOISE, (n, len(_CLASSES)))
        logits[np.arange(n), labels] += ease + _GAIN * members
        shares = np.exp(logits - logits.max(1, keepdims=True))
        models.append(Outputs(shares / shares.sum(1, keepdims=True), labels, members, users))
    return OwnOutputs(models[0], Shadows.of(models[1:]), _CLASSES, (EXAMPLE_NOTE,))
