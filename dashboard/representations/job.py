"""Encoders fitted for a sentence: at once where they are in memory, as a job where they are not."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st

from core.figures.representations import encoder_title
from core.protocols import Encoder
from core.specs import EncoderSpec
from core.studies.prepared import Preparation, Prepared, prepare, prepare_all
from dashboard import cache, work
from dashboard.representations.state import TryRequest, restore_try

__all__ = ["SHIPPED_ATTACK", "adopt_try_job", "prepared_encoders"]

SHIPPED_ATTACK = "probe_mlc"
"""Answers besides, where trained weights of it come with an encoder."""

_MOST_SHARED = 24
_LOCK = threading.Lock()


@st.cache_resource(show_spinner=False)
def _shared() -> OrderedDict[Preparation, Prepared]:
    """Return fitted encoders, which know corpora alone: all sessions may see them."""
    return OrderedDict()


def adopt_try_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(TryRequest):
        restore_try(request)


def prepared_encoders(request: TryRequest) -> dict[str, Prepared] | None:
    """Return the encoders ready to answer, or draw what starts, follows and stops their job."""
    work.drop_others(TryRequest, lambda other: other == request)
    ready = _known(request)
    if ready is not None:
        work.drop(request)  # another session was faster
        return ready
    n = len(request.encoders)
    offer = work.Offer(
        label=f"Invert from {n} encoder{'s' if n > 1 else ''}",
        key="try-encoders",
        is_primary=True,
        note="Each encoder is fitted once for these sentences and kept on this computer; your "
        "sentence is not.",
        on_click=_start,
        failed="The encoders could not be fitted",
        kept="Encoders that were finished are kept.",
    )
    return _opened(request) if work.take(request, offer) else None


def _start(request: TryRequest) -> None:
    plans = _plans(request)
    work.start(request, prepare_all, tuple(plans.values()), tuple(map(encoder_title, plans)))


def _plans(request: TryRequest) -> dict[str, Preparation]:
    shared = {"corpus": request.corpus, "n_texts": request.n_texts}
    return {name: Preparation(encoder=name, **shared) for name in request.encoders}  # type: ignore[arg-type]


def _known(request: TryRequest) -> dict[str, Prepared] | None:
    """Return what is in memory, if that is all."""
    with _LOCK:
        found = {name: _shared().get(plan) for name, plan in _plans(request).items()}
    ready = {name: prepared for name, prepared in found.items() if prepared is not None}
    return ready if len(ready) == len(found) else None


def _opened(request: TryRequest) -> dict[str, Prepared]:
    """Open what the job left on disk, and keep it in memory for all sessions."""
    with st.spinner("Opening the encoders"):
        ready = {name: prepare(plan, load=_load) for name, plan in _plans(request).items()}
    with _LOCK:
        for name, plan in _plans(request).items():
            _shared()[plan] = ready[name]
            _shared().move_to_end(plan)
        while len(_shared()) > _MOST_SHARED:
            _shared().popitem(last=False)
    return ready


def _load(name: str) -> Encoder:
    return cache.encoder(EncoderSpec(name=name))
