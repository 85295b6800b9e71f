"""A map as the page keeps it: drawn, its texts ready to be shown and searched."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.figures.projection import hover_texts
from core.projection.layout import Layout
from core.projection.looks import Looks, looks_of
from core.projection.moves import Moves, move_points
from core.projection.points import Points
from core.projection.quality import NeighbourScore
from core.projection.selection import folded
from core.protocols import Encoder, Vectors
from core.specs import DefenceSpec

__all__ = ["DrawnMap"]

_MOST_MOVES = 32


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """A map with its points and vectors, its texts ready to be shown and searched."""

    points: Points
    vectors: Vectors
    layout: Layout
    hover: list[str]
    folded: list[str]
    agreements: dict[str, NeighbourScore | None] = field(default_factory=dict)
    """By column, once asked."""
    _looks: dict[str, Looks] = field(default_factory=dict)
    _moves: dict[tuple[DefenceSpec, int], Moves] = field(default_factory=dict)

    def looks(self, column: str) -> Looks:
        """Return the groups of a column."""
        if column not in self._looks:
            self._looks[column] = looks_of(self.points.columns[column])
        return self._looks[column]

    def moved(self, encoder: Encoder, rows: NDArray[np.int64], defence: DefenceSpec) -> Moves:
        """Return where a defence moves some points; the last few answers are kept."""
        key = (defence, len(rows))
        if key not in self._moves:
            while len(self._moves) >= _MOST_MOVES:
                self._moves.pop(next(iter(self._moves)), None)
            self._moves[key] = move_points(
                self.layout, encoder, self.points.texts, self.vectors, rows, defence
            )
        return self._moves[key]

    @classmethod
    def of(cls, points: Points, vectors: Vectors, layout: Layout) -> DrawnMap:
        """Wrap and fold the texts."""
        return cls(points, vectors, layout, hover_texts(points.texts), [*map(folded, points.texts)])
