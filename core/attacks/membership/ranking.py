"""Rankings of samples by membership score, their ROC curve, and permuted membership labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError
from leakscope.core.units import cluster_ids


@dataclass(frozen=True, eq=False)
class Ranking:
    """Membership scores of samples with the true labels, and optionally their units.

    Attributes
    ----------
    scores : ndarray of float64, shape (n,)
        Higher where a member is likelier. Infinite ones are allowed, NaN is not.
    members : ndarray of bool, shape (n,)
    units : sequence or None
        The user, book or document of each sample: samples of one are not independent.

    Raises
    ------
    InvalidInputError
        Other shapes, NaN, or all samples of one kind.
    """

    scores: NDArray[np.float64]
    members: NDArray[np.bool_]
    units: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        """Convert and check scores, members and units."""
        scores, members = np.asarray(self.scores, dtype=np.float64), np.asarray(self.members)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "members", _checked_members(members, self.units))
        if scores.shape != members.shape:
            raise InvalidInputError(
                f"Scores of shape {scores.shape} for members of shape {members.shape}."
            )
        if np.isnan(scores).any():
            rows = ", ".join(map(str, np.flatnonzero(np.isnan(scores))[:3]))
            raise InvalidInputError(f"Scores must be numbers; NaN in sample {rows}.")

    @property
    def n_members(self) -> int:
        """The number of samples that the model was trained on."""
        return int(self.members.sum())

    @property
    def n_outsiders(self) -> int:
        """The number of samples that the model was not trained on."""
        return len(self.members) - self.n_members


def _checked_members(members: NDArray[Any], units: Sequence[Hashable] | None) -> NDArray[np.bool_]:
    """Return members unchanged after checking that both kinds occur and the units are as many."""
    if members.ndim != 1 or members.dtype != np.bool_:
        raise InvalidInputError(
            f"Members must be a row of yes or no, got {members.dtype} of shape {members.shape}."
        )
    if members.all() or not members.any():
        kind = "members" if members.all() and len(members) else "non-members"
        raise InvalidInputError(f"All {len(members)} samples are {kind}; an attack needs both.")
    if units is not None and len(units) != len(members):
        raise InvalidInputError(f"{len(units)} units for {len(members)} samples.")
    return members


def roc_curve(ranking: Ranking) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ROC curve of a ranking: false-positive and true-positive rates.

    Returns
    -------
    tuple of ndarray of float64
        Both from 0 to 1, one point a threshold.
    """
    order = np.argsort(-ranking.scores, kind="stable")
    ranked, members = ranking.scores[order], ranking.members[order]
    ends = np.flatnonzero(np.r_[ranked[1:] != ranked[:-1], True])
    true = np.cumsum(members)[ends] / ranking.n_members
    false = np.cumsum(~members)[ends] / ranking.n_outsiders
    return np.r_[0.0, false], np.r_[0.0, true]


def shuffled(
    members: NDArray[np.bool_], units: Sequence[Hashable] | None = None, *, seed: int = 0
) -> NDArray[np.bool_]:
    """Return membership labels permuted at random: the control, on which every attack has to fail.

    Samples of one unit stay together where they are all of one kind; as many samples, or units,
    are members as before.

    Raises
    ------
    InvalidInputError
        A unit holds members and others, so that it cannot be assigned as a whole.
    """
    rng = np.random.default_rng([seed, 6])
    if units is None:
        return rng.permutation(members)
    rows = cluster_ids(units, len(members))
    if not units_are_pure(rows, members):
        raise InvalidInputError(
            "A user holds members and non-members. Shuffle the samples without their users."
        )
    permuted: NDArray[np.bool_] = rng.permutation(np.bincount(rows, weights=members) > 0)[rows]
    return permuted


def units_are_pure(rows: NDArray[np.int64], members: NDArray[np.bool_]) -> bool:
    """Return whether each unit holds only members or only non-members."""
    inside = np.bincount(rows, weights=members)
    return bool(np.all((inside == 0) | (inside == np.bincount(rows))))
