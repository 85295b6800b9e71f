"""Thresholds that an attacker chooses on labelled samples, group by group, for all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.attacks.membership.roc import best_threshold

__all__ = ["Thresholds"]


@dataclass(frozen=True)
class Thresholds:
    """From which score on a sample is called a member.

    Attributes
    ----------
    by_group : dict of int to float
        Of groups whose labelled samples are of both kinds.
    otherwise : float
        Of all other groups.
    """

    by_group: dict[int, float]
    otherwise: float

    @classmethod
    def learned(
        cls, scores: NDArray[np.float64], members: NDArray[np.bool_], groups: NDArray[np.int64]
    ) -> Thresholds:
        """Choose them on labelled samples, where TPR − FPR is largest.

        Raises
        ------
        InvalidInputError
            All labelled samples are of one kind.
        """
        found = {}
        for group in np.unique(groups).tolist():
            own = members[groups == group]
            if own.any() and not own.all():
                found[group] = best_threshold(scores[groups == group], own)
        return cls(found, best_threshold(scores, members))

    def decide(self, scores: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which samples are called members."""
        numbers, places = np.unique(groups, return_inverse=True)
        cuts = np.array([self.by_group.get(int(group), self.otherwise) for group in numbers])
        decided: NDArray[np.bool_] = scores > cuts[places]
        return decided
