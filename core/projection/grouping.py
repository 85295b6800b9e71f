"""Group the values of a column, to colour and shape points by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MISSING = "not given"
_N_GROUPS = 7
_N_PARTS = 5


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of a column's values, and each point's group.

    Attributes
    ----------
    groups : tuple of str
        Shown names: the most frequent values first, parts of numbers ascending.
    of : int64 array (n,)
        The position of each point's group.
    n_merged : int
        How many values the last group puts together as "other"; 0 where none.
    """

    groups: tuple[str, ...]
    of: NDArray[np.int64]
    n_merged: int = 0

    def is_rest(self, group: int) -> bool:
        """Return whether a group is "other" or "not given", rather than a value."""
        is_rest = self.n_merged > 0 and group == len(self.groups) - 1
        return is_rest or self.groups[group] == MISSING


def is_numeric(values: Sequence[str | None]) -> bool:
    """Return whether a column has more than eight distinct values, all of them finite numbers."""
    found = {v for v in values if v is not None}
    if len(found) <= 8:
        return False
    try:
        return all(np.isfinite(float(v)) for v in found)
    except ValueError:
        return False


def most_informative_column(columns: Mapping[str, Sequence[str | None]]) -> str:
    """Return the name of the best column to colour by: few classes, not one value per row.

    Examples
    --------
    >>> most_informative_column({"id": ["1", "2", "3", "4"], "kind": ["a", "b", "a", "b"]})
    'kind'
    >>> most_informative_column({"id": ["1", "2", "3", "4"], "words": ["5", "7", "5", "6"]})
    'words'
    """
    return min(columns, key=lambda name: _informativeness_rank(columns[name]))  # the first on a tie


def _informativeness_rank(values: Sequence[str | None]) -> int:
    """Return how useful a column is to colour by, from how often values repeat: 0 (best) to 5."""
    given = [v for v in values if v is not None]
    n_values = len(set(given))
    if n_values < 2:
        return 5
    if n_values == len(given):
        return 4  # every row has its own value
    if 2 * len(given) < len(values):
        return 3  # most rows have no value
    if n_values <= _N_GROUPS:
        return 0
    return 1 if 4 * n_values <= len(given) or is_numeric(values) else 2


def group_column(values: Sequence[str | None], n_groups: int = _N_GROUPS) -> Grouping:
    """Group each point by its value in a column: most frequent values, or quintiles of numbers.

    Values that would need more than n_groups are put together as "other".

    Examples
    --------
    >>> group_column(["b", "a", "a", None]).groups
    ('a', 'b', 'not given')
    """
    if is_numeric(values):
        return _quintiles(values)
    counts = Counter(v for v in values if v is not None)
    ranked = sorted(counts, key=lambda v: (-counts[v], v))
    n_merged = len(ranked) - n_groups + 1 if len(ranked) > n_groups else 0
    kept: list[str | None] = list(ranked[: len(ranked) - n_merged])
    if None in values:
        kept.append(None)
    position = {value: i for i, value in enumerate(kept)}
    of = np.array([position.get(v, len(kept)) for v in values], np.int64)
    names = [MISSING if v is None else v for v in kept]
    return Grouping((*names, *([f"other ({n_merged:,} values)"] if n_merged else [])), of, n_merged)


def _quintiles(values: Sequence[str | None]) -> Grouping:
    """Group each point by the quintile of its number in a column; missing ones apart."""
    numbers = np.array([np.nan if v is None else float(v) for v in values])
    edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _N_PARTS + 1)))
    of = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    if np.isnan(numbers).any():
        of[np.isnan(numbers)] = len(names)
        names.append(MISSING)
    return Grouping(tuple(names), of.astype(np.int64))
