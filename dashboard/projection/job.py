"""From a request to a map: at once where it was drawn before, as a job where it was not."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from core.errors import CoreError
from core.jobs import JobState
from core.projection.cached import project_cached
from core.projection.layout import MAX_POINTS, project
from core.projection.points import Points, corpus_points
from core.projection.shipped import CORPUS, N_POINTS, find_shipped, find_vectors
from core.projection.spec import ProjectionSpec
from core.protocols import Encoder, OnProgress, Vectors
from dashboard import cache
from dashboard.calm import show_error
from dashboard.inversion import answers
from dashboard.progress import follow
from dashboard.projection import state as map_state
from dashboard.projection.drawn import DrawnMap
from dashboard.projection.state import MapRequest

__all__ = ["adopt_map_job", "drawn_map", "known_map", "stop_other_job"]

_MOST_SHARED = 4
_SHARE_OF_ENCODING = 0.7
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
    waiting = map_state.map_job()
    if waiting is not None and waiting[0] != request:
        cache.jobs().forget(waiting[1])
        map_state.remember_map_job(None)


def drawn_map(request: MapRequest, points: Points | None) -> DrawnMap | None:
    """Return a map that is not known yet, or draw what starts, follows and stops its job.

    Parameters
    ----------
    points : Points or None
        Of an upload; a corpus is read within the job.
    """
    waiting = map_state.map_job()
    job = cache.jobs().view(waiting[1]) if waiting else None
    if job is None and (waiting is None or not request.is_upload or points is not None):
        _start(request, points)
        job = cache.jobs().view(map_state.map_job()[1])  # type: ignore[index]
    if job is None:
        return None
    if job.state is JobState.DONE:
        map_state.remember_map_job(None)
        cache.jobs().forget(job.id)
        with _LOCK:
            found: DrawnMap = job.result
            return _keep(request, found)
    if not job.is_final:
        follow(job.id)
        return None
    if job.state is JobState.FAILED:
        show_error(job.error, title="The map could not be drawn")
    else:
        st.info(f"Stopped after {job.seconds:.0f} s. Change a setting, or draw the map after all.",
                icon=":material/stop_circle:")  # fmt: skip
    st.button(
        "Draw the map",
        key="draw-map",
        type="primary",
        icon=":material/play_arrow:",
        help="It runs beside this page. You can stop it, or reload the page.",
        on_click=_start,
        args=(request, points),
    )
    return None


def _start(request: MapRequest, points: Points | None) -> None:
    def work(on_progress: OnProgress) -> DrawnMap:
        return _draw(request, points, on_progress)

    map_state.remember_map_job(request, cache.jobs().start(work, request=request))


def _draw(request: MapRequest, points: Points | None, on_progress: OnProgress) -> DrawnMap:
    on_progress(0.0, "Reading the texts")
    if points is None:
        points = corpus_points(
            request.source,
            min(request.n, MAX_POINTS),
            seed=request.sample_seed,
            is_private=request.is_private,
        )
    on_progress(0.0, "Loading the encoder")
    encoder = cache.encoder(request.on)
    vectors = None if points.is_private else _known_vectors(points, encoder)
    share = _SHARE_OF_ENCODING if vectors is None else 0.0
    if vectors is None:
        vectors = _encoded(points, encoder, lambda done, told: on_progress(share * done, told))
    draw = project if points.is_private else project_cached
    layout = draw(
        vectors,
        request.spec,
        lambda done, told: on_progress(share + (1 - share) * done, told),
    )
    return DrawnMap.of(points, vectors, layout)


def _known_vectors(points: Points, encoder: Encoder) -> Vectors | None:
    """Return the vectors that come with the project, where they are of these texts."""
    try:
        return find_vectors(points, encoder.name, encoder.fingerprint)
    except CoreError:  # damaged: they can be encoded anew
        return None


def _encoded(points: Points, encoder: Encoder, on_progress: OnProgress) -> Vectors:
    if not points.is_private:
        from core.encoders.cache import CachedEncoder

        encoder = CachedEncoder(encoder)
    n = len(points)
    return encoder.encode(
        points.texts,
        lambda done, _: on_progress(done, f"Encoding, {round(done * n):,} of {n:,} texts"),
    )


def adopt_map_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or not isinstance(job.request, MapRequest):
            continue
        if map_state.map_job() is None:
            map_state.restore_map(job.request)
            map_state.remember_map_job(job.request, job_id)
