"""From a request to a map: at once where it was drawn before, as a job where it was not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.errors import CoreError
from core.figures.projection import hover_texts
from core.jobs import JobState
from core.projection.cached import project_cached
from core.projection.layout import MAX_POINTS, Layout, project
from core.projection.looks import Looks, looks_of
from core.projection.moves import Moves, move_points
from core.projection.points import Points, corpus_points
from core.projection.quality import Agreement
from core.projection.selection import folded
from core.projection.shipped import CORPUS, N_POINTS, find_shipped, find_vectors
from core.projection.spec import ProjectionSpec
from core.protocols import Encoder, OnProgress, Vectors
from core.specs import DefenceSpec
from dashboard import answers, cache, map_state
from dashboard.calm import show_error
from dashboard.map_state import MapRequest
from dashboard.progress import follow

__all__ = ["DrawnMap", "adopt_map_job", "drawn_map", "known_map", "stop_other_job"]

_MOST_SHARED = 4
_MOST_MOVES = 32
_SHARE_OF_ENCODING = 0.7
_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class DrawnMap:
    """A map with its points and vectors, its texts ready to be shown and searched."""

    points: Points
    vectors: Vectors
    layout: Layout
    hover: list[str]
    folded: list[str]
    agreements: dict[str, Agreement | None] = field(default_factory=dict)
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
        map_state.remember_own(request, drawn)
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
