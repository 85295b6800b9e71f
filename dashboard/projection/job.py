"""From a request to a map: at once where it was drawn before, as a job where it was not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import partial

import streamlit as st

from core.errors import CoreError
from core.projection.job import MapRequest, draw_map
from core.projection.layout import check_count
from core.projection.points import Points, corpus_points
from core.projection.shipped import CORPUS, N_POINTS, find_shipped
from core.projection.spec import ProjectionSpec
from dashboard import cache, work
from dashboard.inversion import answers
from dashboard.projection import state as map_state
from dashboard.projection.drawn import DrawnMap

__all__ = ["adopt_map_job", "drawn_map", "known_map", "stop_other_job"]

_MOST_SHARED = 4
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _shared() -> OrderedDict[MapRequest, DrawnMap]:
    """Return the maps of corpora, which all sessions may see."""
    return OrderedDict()


def known_map(request: MapRequest) -> DrawnMap | None:
    """Return a map that was drawn before or ships with the project."""
    if request.is_private:
        return map_state.own_maps().get(request)
    with _LOCK:
        return _shared().get(request) or _find_shipped(request)


def _find_shipped(request: MapRequest) -> DrawnMap | None:
    """Open the map that comes with the project, where that is the one."""
    asked = (request.source, request.n, request.sample_seed, request.on)
    is_default = request.spec.identity == ProjectionSpec().identity
    if asked != (CORPUS, N_POINTS, 0, answers.ENCODER) or not is_default:
        return None
    points = corpus_points(CORPUS, N_POINTS)
    encoder = cache.encoder(request.on)
    try:
        found = find_shipped(points, encoder.name, encoder.fingerprint, request.spec)
    except CoreError:  # damaged: it can be drawn anew
        return None
    return _keep(request, DrawnMap.of(points, *found)) if found else None


def _keep(request: MapRequest, drawn: DrawnMap) -> DrawnMap:
    if request.is_private:
        map_state.own_maps().add(request, drawn)
        return drawn
    shared = _shared()
    shared[request] = drawn
    while len(shared) > _MOST_SHARED:
        shared.popitem(last=False)
    return drawn


def stop_other_job(request: MapRequest) -> None:
    """Stop the job of a map that is no longer asked for."""
    work.drop_others(MapRequest, lambda other: other == request)


def drawn_map(request: MapRequest, points: Points | None) -> DrawnMap | None:
    """Return a map that is not known yet, or draw what starts, follows and stops its job.

    Parameters
    ----------
    points : Points or None
        Of an upload; a corpus is read within the job.
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
        kept="Change a setting, or draw the map after all.",
        is_primary=True,
    )
    done = work.take(request, offer)
    if done is None:
        return None
    with _LOCK:
        return _keep(request, DrawnMap.of(*done.result))


def _start(points: Points | None, request: MapRequest) -> None:
    work.start(request, draw_map, request, points)


def adopt_map_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(MapRequest):
        map_state.restore_map(request)
