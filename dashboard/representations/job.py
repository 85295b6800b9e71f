"""Encoders fitted for a sentence, from memory or by a background job."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from leakscope.core.figures.representations import encoder_title
from leakscope.core.protocols import Encoder
from leakscope.core.specs import EncoderSpec
from leakscope.core.studies.inversion.prepared import Preparation, Prepared, prepare, prepare_all
from leakscope.dashboard import cache
from leakscope.dashboard.representations.state import TryRequest, restore_try
from leakscope.dashboard.ui import work

SHIPPED_ATTACK = "probe_mlc"
"""The attack that is added for encoders with shipped weights."""

_MOST_SHARED = 24
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _shared_encoders() -> OrderedDict[Preparation, Prepared]:
    """Return the cache of fitted encoders, shared by all sessions; it holds no user texts."""
    return OrderedDict()


def adopt_try_job() -> None:
    """Restore the controls from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(TryRequest):
        restore_try(request)


def prepared_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the fitted encoders, or draw the controls of their job and return None."""
    work.drop_others(TryRequest, lambda other: other == request)
    ready = _cached_encoders(request)
    if ready is not None:
        work.drop(request)  # another session was faster
        return ready
    n = len(request.encoders)
    offer = work.Offer(
        label=f"Invert from {n} encoder{'s' if n > 1 else ''}",
        key="try-encoders",
        is_primary=True,
        note="Each encoder is fitted once on these sentences and stored on this computer. Your own "
        "sentence is not stored.",
        on_click=_start,
        failed="The encoders could not be fitted",
        stopped_note="Finished encoders are kept.",
    )
    return _load_encoders(request) if work.draw_job(request, offer) else None


def _start(request: TryRequest) -> None:
    """Start the job that fits the encoders of a request."""
    plans = _plans(request)
    work.start(request, prepare_all, tuple(plans.values()), tuple(map(encoder_title, plans)))


def _plans(request: TryRequest) -> dict[str, Preparation]:
    """Return the preparation of each encoder of a request."""
    shared = {"corpus": request.corpus, "n_texts": request.n_texts}
    return {name: Preparation(encoder=name, **shared) for name in request.encoders}  # type: ignore[arg-type]


def _cached_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the fitted encoders from memory if all are there, else None."""
    with _LOCK:
        found = {name: _shared_encoders().get(plan) for name, plan in _plans(request).items()}
    ready = {name: prepared for name, prepared in found.items() if prepared is not None}
    return ready if len(ready) == len(found) else None


def _load_encoders(request: TryRequest) -> dict[str, Prepared]:
    """Load the fitted encoders from disk, and cache them for all sessions."""
    with st.spinner("Loading the encoders"):
        ready = {name: prepare(plan, load=_load) for name, plan in _plans(request).items()}
    with _LOCK:
        for name, plan in _plans(request).items():
            _shared_encoders()[plan] = ready[name]
            _shared_encoders().move_to_end(plan)
        while len(_shared_encoders()) > _MOST_SHARED:
            _shared_encoders().popitem(last=False)
    return ready


def _load(name: str) -> Encoder:
    """Load a bundled encoder through the server's cache."""
    return cache.encoder(EncoderSpec(name=name))
