"""A map with its points, vectors and layout, and derived results cached."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakscope.core.figures.projection import hover_texts
from leakscope.core.projection.clusters import ClusterLabel, cluster_labels
from leakscope.core.projection.displacement import Displacement, move_points
from leakscope.core.projection.grouping import Grouping, group_column
from leakscope.core.projection.layout import Layout
from leakscope.core.projection.points import Points
from leakscope.core.projection.quality import NeighbourScore, neighbour_agreement
from leakscope.core.projection.selection import search_form
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.specs import DefenceSpec
from leakscope.core.units import units_of

_MOST_DISPLACEMENTS = 32


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """A map's points, vectors and layout, with texts prepared for display and search."""

    points: Points
    vectors: Vectors
    layout: Layout
    _agreements: dict[str, NeighbourScore | None] = field(default_factory=dict)
    _groupings: dict[str, Grouping] = field(default_factory=dict)
    _displacements: dict[tuple[DefenceSpec, int], Displacement] = field(default_factory=dict)

    @cached_property
    def hover(self) -> list[str]:
        """The texts as hover labels of a figure in three dimensions."""
        return hover_texts(self.points.texts)

    @cached_property
    def search_form(self) -> list[str]:
        """The texts, folded for search."""
        return [search_form(text) for text in self.points.texts]

    @cached_property
    def cluster_labels(self) -> list[ClusterLabel]:
        """The labels of the clusters of a flat map."""
        return cluster_labels(self.layout.coordinates, self.points.texts)

    def grouping(self, column: str) -> Grouping:
        """Return the groups of a column, cached."""
        if column not in self._groupings:
            self._groupings[column] = group_column(self.points.columns[column])
        return self._groupings[column]

    def column_agreement(self, column: str) -> NeighbourScore | None:
        """Return how often neighbours share a column's value, cached; None if too few have one."""
        if column not in self._agreements:
            grouping = group_column(self.points.columns[column], 10**9)
            classes = [None if grouping.is_rest(g) else int(g) for g in grouping.of]
            self._agreements[column] = neighbour_agreement(
                self.layout.coordinates, classes, units=units_of(self.points.texts)
            )
        return self._agreements[column]

    def displacement(
        self, encoder: Encoder, rows: NDArray[np.int64], defence: DefenceSpec
    ) -> Displacement:
        """Return where a defence moves some points; the last results are cached."""
        key = (defence, len(rows))
        if key not in self._displacements:
            while len(self._displacements) >= _MOST_DISPLACEMENTS:
                self._displacements.pop(next(iter(self._displacements)), None)
            self._displacements[key] = move_points(
                self.layout, encoder, self.points.texts, self.vectors, rows, defence
            )
        return self._displacements[key]
