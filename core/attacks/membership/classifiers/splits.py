"""Who is a member, who is not, and what the attacker may train on: parts that share no unit.

A unit is what is drawn: a text at sample level, a user with all of their texts at user level.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from core.errors import InvalidInputError

__all__ = ["LEAST_UNITS", "Parts", "check_apart", "draw_parts", "random_halves"]

LEAST_UNITS = 25
"""With fewer there is no unit for validation."""

_VALIDATION, _TEST = 0.04, 0.08
"""Shares of the units; what is left is dealt in four: members and not, of target and shadow."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of each part of an experiment; no unit is in two.

    Attributes
    ----------
    members, outsiders : ndarray of int64
        What the target was trained on, and what it was not: the attacked samples. Both come from
        one random split.
    shadow_members, shadow_outsiders : ndarray of int64
        The attacker's own data, of the same source: what the shadow is trained on, and not.
    validation, shadow_validation : ndarray of int64
        What early stopping of the target and of shadows looks at.
    test : ndarray of int64
        On which accuracy is measured; no model ever learns from it.
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
        """Members and non-members of the target, in the order of the rows."""
        return np.sort(np.concatenate([self.members, self.outsiders]))

    @property
    def shadowed(self) -> NDArray[np.int64]:
        """Members and non-members of the shadow, in the order of the rows."""
        return np.sort(np.concatenate([self.shadow_members, self.shadow_outsiders]))


def draw_parts(units: Sequence[Hashable], seed: int) -> Parts:
    """Deal units into parts by one permutation.

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
            f"An attack needs at least {LEAST_UNITS} users or texts to be dealt into members, "
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
    """Return for each of several shadow models on which rows it is trained.

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


def check_apart(parts: Parts, units: Sequence[Hashable], shadow_trained: NDArray[np.bool_]) -> None:
    """Check that the attacker's own model knows nothing of what it is to help to attack.

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
