"""Draw a map: from the cache, from the shipped files, or in a background job."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import partial

import streamlit as st

from leakscope.core.errors import CoreError
from leakscope.core.projection.job import MapRequest, draw_map
from leakscope.core.projection.layout import check_count
from leakscope.core.projection.points import Points, corpus_points
from leakscope.core.projection.shipped import CORPUS, N_POINTS, find_shipped
from leakscope.core.projection.spec import ProjectionSpec
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.projection import state as map_state
from leakscope.dashboard.projection.drawn_map import DrawnMap
from leakscope.dashboard.ui import work

_MOST_SHARED = 4
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _corpus_maps() -> OrderedDict[MapRequest, DrawnMap]:
    """Return the maps of corpora, shared by all sessions."""
    return OrderedDict()


def cached_map(request: MapRequest) -> DrawnMap | None:
    """Return a cached or shipped map; None if it must be drawn."""
    if request.is_private:
        return map_state.own_maps().get(request)
    with _LOCK:
        return _corpus_maps().get(request) or _find_shipped(request)


def _find_shipped(request: MapRequest) -> DrawnMap | None:
    """Load the shipped map if the request is for it, and cache it; else return None."""
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
    """Cache a map, in the session if it is private, and return it."""
    if request.is_private:
        map_state.own_maps().add(request, drawn)
        return drawn
    shared = _corpus_maps()
    shared[request] = drawn
    while len(shared) > _MOST_SHARED:
        shared.popitem(last=False)
    return drawn


def stop_other_job(request: MapRequest) -> None:
    """Stop the jobs of other maps of this visitor."""
    work.drop_others(MapRequest, lambda other: other == request)


def drawn_map(request: MapRequest, points: Points | None) -> DrawnMap | None:
    """Start or follow the job of a map; return the map once it is drawn, else None.

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
    """Start the job of a map."""
    work.start(request, draw_map, request, points)


def adopt_map_job() -> None:
    """Restore the controls from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(MapRequest):
        map_state.restore_map(request)
