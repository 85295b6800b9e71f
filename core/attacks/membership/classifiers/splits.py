"""Split data into members, non-members and the attacker's own samples, without shared units.

A unit is a text at sample level, and a user with all of their texts at user level.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from leakscope.core.errors import InvalidInputError

LEAST_UNITS = 25
"""The fewest units that leave one for validation."""

_VALIDATION, _TEST = 0.04, 0.08
"""Shares of the units; the rest is split in four: target and shadow, members and non-members."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of each disjoint part of an experiment.

    Attributes
    ----------
    members, outsiders : ndarray of int64
        The attacked samples, on which the target was trained and was not, from one random split.
    shadow_members, shadow_outsiders : ndarray of int64
        The attacker's own data from the same source, on which the shadow is trained and is not.
    validation, shadow_validation : ndarray of int64
        For early stopping of the target and of shadows.
    test : ndarray of int64
        For measuring accuracy; no model learns from it.
    """

    members: NDArray[np.int64]
    outsiders: NDArray[np.int64]
    shadow_members: NDArray[np.int64]
    shadow_outsiders: NDArray[np.int64]
    validation: NDArray[np.int64]
    shadow_validation: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def attacked(self) -> NDArray[np.int64]:
        """The rows of the target's members and non-members, in row order."""
        return np.sort(np.concatenate([self.members, self.outsiders]))

    @property
    def shadowed(self) -> NDArray[np.int64]:
        """The rows of the shadow's members and non-members, in row order."""
        return np.sort(np.concatenate([self.shadow_members, self.shadow_outsiders]))


def draw_parts(units: Sequence[Hashable], seed: int) -> Parts:
    """Assign units to disjoint parts by one random permutation; return the rows of each part.

    Implements the setting of Shejwalkar et al. (2021), Appendix B: members, non-members, shadow
    members and shadow non-members are as many users each, disjoint; others validate and test.
    Differs from the paper: the shadow has validation units of its own, since it would else have
    seen the target's.

    Parameters
    ----------
    units : sequence
        Of every row: its user, or the row itself.

    Raises
    ------
    InvalidInputError
        Fewer than LEAST_UNITS different units.
    """
    distinct = list(dict.fromkeys(units))
    n = len(distinct)
    if n < LEAST_UNITS:
        raise InvalidInputError(
            f"An attack needs at least {LEAST_UNITS} users or texts to be split into members, "
            f"non-members and the attacker's own, got {n}. Give more."
        )
    n_validation, n_test = max(1, round(_VALIDATION * n)), max(1, round(_TEST * n))
    quarter = (n - 2 * n_validation - n_test) // 4
    sizes = [quarter] * 4 + [n_validation] * 2
    bounds = np.cumsum(sizes)
    rank = np.random.default_rng([seed, 21]).permutation(n)
    part_of = dict(zip(distinct, np.searchsorted(bounds, rank, side="right"), strict=True))
    of_row = np.array([part_of[unit] for unit in units])
    return Parts(*(np.flatnonzero(of_row == part) for part in range(len(fields(Parts)))))


def random_halves(units: Sequence[Hashable], n_models: int, seed: int) -> NDArray[np.bool_]:
    """Draw training masks of shadow models (n_models, n) with each unit in exactly half of them.

    Implements the sampling of Carlini et al. (2022), §V-B: every unit is in exactly half of the
    models, which ones is drawn for each unit by itself.
    Differs from the paper: units may be users.

    Returns
    -------
    ndarray of bool, shape (n_models, n)

    Raises
    ------
    InvalidInputError
        An odd number of models.

    Examples
    --------
    >>> random_halves(["ann", "ann", "bob"], 4, seed=0).sum(0).tolist()
    [2, 2, 2]
    """
    if n_models < 2 or n_models % 2:
        raise InvalidInputError(
            f"Each sample is in half of the shadow models: give an even number, got {n_models}."
        )
    distinct = {unit: i for i, unit in enumerate(dict.fromkeys(units))}
    rng = np.random.default_rng([seed, 22])
    drawn = rng.random((n_models, len(distinct))).argsort(0).argsort(0) < n_models // 2
    return drawn[:, [distinct[unit] for unit in units]]


def check_disjoint(
    parts: Parts, units: Sequence[Hashable], shadow_trained: NDArray[np.bool_]
) -> None:
    """Raise InvalidInputError if parts share a unit or the shadow's training data are not its own.

    Parameters
    ----------
    shadow_trained : ndarray of bool, shape (n,)
        On which rows the shadow of Shejwalkar et al. (2021) is trained.

    Raises
    ------
    InvalidInputError
        A unit is in two parts, or the shadow is trained on what is attacked or tested.
    """
    seen: dict[Hashable, str] = {}
    for part in fields(Parts):
        for row in getattr(parts, part.name):
            if seen.setdefault(units[row], part.name) != part.name:
                raise InvalidInputError(
                    f"{units[row]!r} is among {seen[units[row]]} and {part.name}: the parts of an "
                    "attack must not overlap."
                )
    allowed = np.zeros(len(units), dtype=bool)
    allowed[parts.shadow_members] = True
    n_known = int((shadow_trained & ~allowed).sum())
    if n_known:
        raise InvalidInputError(
            f"The shadow is trained on {n_known} samples that are not the attacker's own: its "
            "thresholds would know the target's members."
        )
