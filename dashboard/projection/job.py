"""Drawn maps: from the cache, from the shipped files, or from a background job."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from leakscope.core.errors import CoreError
from leakscope.core.figures.projection import hover_texts
from leakscope.core.projection.clusters import ClusterLabel, cluster_labels
from leakscope.core.projection.displacement import Displacement, move_points
from leakscope.core.projection.grouping import Grouping, group_column
from leakscope.core.projection.job import MapRequest, draw_map
from leakscope.core.projection.layout import Layout, check_count
from leakscope.core.projection.points import Points, corpus_points
from leakscope.core.projection.quality import NeighbourScore, neighbour_agreement
from leakscope.core.projection.selection import search_form
from leakscope.core.projection.shipped import CORPUS, N_POINTS, find_shipped
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.core.protocols import Encoder, Vectors
from leakscope.core.specs import DefenceSpec
from leakscope.core.units import units_of
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.projection import state as map_state
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.session_results import SessionCache

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
        """The texts as hover labels of a 3D figure: shortened, wrapped and escaped."""
        return hover_texts(self.points.texts)

    @cached_property
    def search_form(self) -> list[str]:
        """The texts folded for search, such as to lower case."""
        return [search_form(text) for text in self.points.texts]

    @cached_property
    def cluster_labels(self) -> list[ClusterLabel]:
        """The word labels of the clusters of a flat map, with their positions."""
        return cluster_labels(self.layout.coordinates, self.points.texts)

    def grouping(self, column: str) -> Grouping:
        """Group the points by a named column's values, cached."""
        if column not in self._groupings:
            self._groupings[column] = group_column(self.points.columns[column])
        return self._groupings[column]

    def column_agreement(self, column: str) -> NeighbourScore | None:
        """Measure how often map neighbours share a column's value, cached; None for few values."""
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
        """Protect some points' texts with a defence; return where the points move, cached."""
        key = (defence, len(rows))
        if key not in self._displacements:
            while len(self._displacements) >= _MOST_DISPLACEMENTS:
                self._displacements.pop(next(iter(self._displacements)), None)
            self._displacements[key] = move_points(
                self.layout, encoder, self.points.texts, self.vectors, rows, defence
            )
        return self._displacements[key]


_MOST_SHARED = 4
_OWN_MAPS: SessionCache[MapRequest, DrawnMap] = SessionCache("_own_maps", 2)
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _corpus_maps() -> OrderedDict[MapRequest, DrawnMap]:
    """Return the shared cache of maps of corpora, which callers fill."""
    return OrderedDict()


def cached_map(request: MapRequest) -> DrawnMap | None:
    """Return a cached map, or load the shipped one; None if the map must be computed."""
    if request.is_private:
        return _OWN_MAPS.get(request)
    with _LOCK:
        return _corpus_maps().get(request) or _find_shipped(request)


def _find_shipped(request: MapRequest) -> DrawnMap | None:
    """Load and cache the shipped map if the request is for it; else return None."""
    asked = (request.source, request.n, request.sample_seed, request.on)
    is_default = request.spec.identity == ProjectionSpec().identity
    if asked != (CORPUS, N_POINTS, 0, answers.ENCODER) or not is_default:
        return None
    points = corpus_points(CORPUS, N_POINTS)
    encoder = cache.encoder(request.on)
    try:
        found = find_shipped(points, encoder.name, encoder.fingerprint, request.spec)
    except CoreError:  # damaged: draw the map again
        return None
    return _cache_map(request, DrawnMap(points, *found)) if found else None


def _cache_map(request: MapRequest, drawn: DrawnMap) -> DrawnMap:
    """Cache a map, in the session if it is private, else for all; return it unchanged."""
    if request.is_private:
        _OWN_MAPS.add(request, drawn)
        return drawn
    shared = _corpus_maps()
    shared[request] = drawn
    while len(shared) > _MOST_SHARED:
        shared.popitem(last=False)
    return drawn


def stop_other_job(request: MapRequest) -> None:
    """Stop this visitor's jobs that compute other maps."""
    work.drop_others(MapRequest, lambda other: other == request)


def drawn_map(request: MapRequest, points: Points | None) -> DrawnMap | None:
    """Start or follow the job that computes a map; return the map once it is done, else None.

    Parameters
    ----------
    points : Points or None
        The points of an upload; a corpus is read within the job.
    """
    can_start = not request.is_upload or points is not None
    if points is not None:
        check_count(len(points))
    if not work.is_known(request):
        if not can_start:
            return None
        _start(points, request)
    offer = work.Offer(
        label="Draw the map",
        key="draw-map",
        on_click=partial(_start, points),
        failed="The map could not be drawn",
        stopped_note="Change a setting, or draw the map again.",
        is_primary=True,
    )
    done = work.draw_job(request, offer)
    if done is None:
        return None
    with _LOCK:
        return _cache_map(request, DrawnMap(*done.result))


def _start(points: Points | None, request: MapRequest) -> None:
    """Start the background job that computes a map, from an upload's points or a corpus."""
    work.start(request, draw_map, request, points)


def adopt_map_job() -> None:
    """Restore the controls from a map job that the URL names, after a reload."""
    for request in work.adopt_jobs(MapRequest):
        map_state.restore_map(request)
