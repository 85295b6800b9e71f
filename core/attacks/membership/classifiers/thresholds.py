"""Thresholds on membership features, chosen on the attacker's own models (S21).

S21 is Shejwalkar et al. (2021), appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.attacks.membership.classifiers.features import FEATURES, member_score
from leakscope.core.attacks.membership.classifiers.outputs import Outputs, Shadows
from leakscope.core.errors import InvalidInputError, NotFittedError
from leakscope.core.specs import setting

_Array = NDArray[np.float64]


def accuracy_threshold(scores: _Array, members: NDArray[np.bool_]) -> float:
    """Return the score threshold that maximises the accuracy of calling samples members.

    Implements S21, Algorithm 1, line 5:
    τ = argmax_τ Σ_members 1{f ≥ τ} + Σ_others 1{f < τ}.
    Differs from the paper, which leaves open which of many it is: half-way between two scores,
    and the highest of those that are equally good, so that the least are accused. It is finite:
    the lowest score where all are called members, just above the highest where none is.

    Examples
    --------
    >>> accuracy_threshold(np.array([1.0, 2.0, 3.0, 5.0]), np.array([False, True, False, True]))
    4.0
    """
    order = np.argsort(scores, kind="stable")
    ranked, inside = scores[order], members[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
    below = np.r_[0, np.cumsum(~inside)]  # non-members not called members
    above = inside.sum() - np.r_[0, np.cumsum(inside)]  # members called members
    cuts = np.r_[starts, len(ranked)]
    right = (below + above)[cuts]
    best = int(cuts[len(cuts) - 1 - int(np.argmax(right[::-1]))])
    if best == 0:
        return float(ranked[0])
    if best == len(ranked):
        return float(np.nextafter(ranked[-1], np.inf))
    half = float(ranked[best - 1] + (ranked[best] - ranked[best - 1]) / 2)
    return half if half > ranked[best - 1] else float(ranked[best])


def class_thresholds(
    scores: _Array, labels: NDArray[np.int64], members: NDArray[np.bool_], n_classes: int
) -> _Array:
    """Return, for each class, the score threshold with the highest membership accuracy.

    Implements S21, Algorithm 1, lines 2–6. Differs from the paper: a class of which the shadow
    data hold no members, or nothing but members, takes the threshold of all classes together.

    Raises
    ------
    InvalidInputError
        The shadow data hold one kind alone.
    """
    _check_both(members)
    found = np.full(n_classes, accuracy_threshold(scores, members))
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_classes + 1))
    for y in range(n_classes):
        rows = order[starts[y] : starts[y + 1]]
        n_members = int(members[rows].sum())
        if 0 < n_members < len(rows):
            found[y] = accuracy_threshold(scores[rows], members[rows])
    return found


def _check_both(members: NDArray[np.bool_]) -> None:
    """Raise InvalidInputError unless there are members and non-members."""
    if members.all() or not members.any():
        kind = "members" if members.all() and len(members) else "non-members"
        raise InvalidInputError(
            f"The shadow models' samples are all {kind}: a threshold needs both. Give shadow "
            "models rows of samples that they were trained on, and of others."
        )


def shadow_outputs(shadows: Shadows | Sequence[Outputs]) -> list[Outputs]:
    """Return the outputs of each shadow model as a list.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    models = shadows.models() if isinstance(shadows, Shadows) else list(shadows)
    if not models:
        raise InvalidInputError("There is no shadow model. Give at least one.")
    return models


def feature_setting() -> Any:
    """Build the dataclass field of a setting that chooses a feature."""
    return setting("loss", "the feature of an output", choices=tuple(FEATURES))


@dataclass
class FeatureScore:
    """An attack that ranks samples by one feature; it needs no shadow model."""

    feature: str = feature_setting()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> FeatureScore:
        """Return self unchanged: this attack learns nothing from shadow models."""
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return each target sample's feature, signed so that members have more."""
        return member_score(self.feature, target)


@dataclass
class ClassThreshold:
    """An attack that compares a feature with a threshold for the sample's class (S21, Alg. 1)."""

    feature: str = feature_setting()

    def fit(self, shadows: Shadows | Sequence[Outputs]) -> ClassThreshold:
        """Choose the threshold of each class on the pooled samples of shadow models.

        They need not have answered for the samples of the target.
        """
        models = shadow_outputs(shadows)
        self.thresholds_ = class_thresholds(
            np.concatenate([member_score(self.feature, model) for model in models]),
            np.concatenate([model.labels for model in models]),
            np.concatenate([model.members for model in models]),
            models[0].n_classes,
        )
        return self

    def scores(self, target: Outputs) -> _Array:
        """Return how far each target sample is above its class's threshold; at least 0: member.

        Implements S21, Algorithm 1, line 7: 1{F(M(x), y) ≥ τ_y}. Differs from the paper, which
        does not say by what its AUC ranks: F − τ_y, of which its decisions are the sign.

        Raises
        ------
        NotFittedError
            No thresholds were found before.
        """
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("ClassThreshold has no thresholds. Call fit with shadow models.")
        passed: _Array = member_score(self.feature, target) - self.thresholds_[target.labels]
        return passed

    def decide(self, target: Outputs) -> NDArray[np.bool_]:
        """Return a mask of the target's samples that are called members.

        Raises
        ------
        NotFittedError
            As `scores`.
        """
        return self.scores(target) >= 0
