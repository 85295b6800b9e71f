"""Which encoder a page is about, and the job that measures one that is new."""

from __future__ import annotations

import os
from dataclasses import dataclass

import streamlit as st

from core.defences.deniability.measured import known_encoders, measure_statistics
from core.encoders.white_box import require_white_box
from core.jobs import JobState
from core.protocols import OnProgress
from core.specs import EncoderSpec
from dashboard import cache
from dashboard.calm import show_error
from dashboard.inversion import answers
from dashboard.progress import follow

__all__ = [
    "adopt_encoder_link",
    "chosen_encoder",
    "encoder_picker",
    "link_part",
    "measure_card",
]

ENCODER_KEY = "encoder"
_BUNDLED = answers.ENCODER.name


@dataclass(frozen=True)
class _Measuring:
    """What a job of this page was asked for."""

    on: EncoderSpec


def adopt_encoder_link() -> str | None:
    """Take over the encoder from the address, once per address; return a name that is refused.

    An address opens only encoders that were measured on this computer: following a link must not
    fetch a model.
    """
    st.session_state.setdefault(ENCODER_KEY, _BUNDLED)
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or not isinstance(job.request, _Measuring):
            continue
        if job.state is JobState.DONE:
            st.query_params.pop("job", None)
        if job.request.on not in _jobs():  # the page was reloaded meanwhile
            _jobs()[job.request.on] = job_id
            st.session_state[ENCODER_KEY] = job.request.on.name
    asked = st.query_params.get("encoder")
    if asked == st.session_state.get("_adopted_encoder"):
        return st.session_state.get("_refused_encoder")
    st.session_state["_adopted_encoder"] = asked
    is_known = asked is None or asked == _BUNDLED or asked in known_encoders()
    st.session_state["_refused_encoder"] = None if is_known else asked
    if asked is not None and is_known:
        st.session_state[ENCODER_KEY] = asked
    return st.session_state["_refused_encoder"]


def chosen_encoder() -> EncoderSpec:
    """Return the encoder in force."""
    return EncoderSpec(name=str(st.session_state.get(ENCODER_KEY) or _BUNDLED).strip())


def link_part() -> list[tuple[str, str]]:
    """Return what an address must say of the encoder: nothing of the bundled one."""
    name = chosen_encoder().name
    return [] if name == _BUNDLED else [("encoder", name)]


def encoder_picker() -> None:
    """Draw the choice of the encoder: bundled, measured before, or typed."""
    names = [_BUNDLED, *known_encoders()]
    here = chosen_encoder().name
    st.selectbox(
        "Encoder",
        names if here in names else [*names, here],
        key=ENCODER_KEY,
        accept_new_options=True,
        required=True,
        persist_state="session",
        format_func=lambda name: "all-MiniLM-L6-v2 (bundled)" if name == _BUNDLED else name,
        help="Pick one, or type `mlm:` or `st:` and the name of a model of the Hugging Face hub "
        "or a folder, such as `mlm:bert-base-uncased`. A model that is not on this computer is "
        "fetched from the hub.",
    )


def measure_card(on: EncoderSpec) -> None:
    """Draw what measures all tokens of an encoder, or how far it is."""
    job_id = _jobs().get(on)
    job = cache.jobs().view(job_id) if job_id else None
    if job is not None and not job.is_final:
        follow(job.id)
        return
    if job is not None and job.state is JobState.FAILED:
        show_error(job.error, title="The tokens could not be measured")
    if job is not None and job.state is JobState.STOPPED:
        st.caption(f"Stopped after {job.seconds:.0f} s. Nothing of it was kept.")
    st.button(
        "Measure all tokens",
        key="measure-tokens",
        icon=":material/play_arrow:",
        help="It runs beside this page. You can go on reading, stop it, or reload the page.",
        on_click=_start,
        args=(on,),
    )


def _start(on: EncoderSpec) -> None:
    def work(on_progress: OnProgress) -> None:
        on_progress(0.0, "Loading the encoder")
        encoder = require_white_box(cache.encoder(on), "deniability")
        n_threads = max(1, (os.cpu_count() or 2) - 1)
        measure_statistics(encoder, n_threads=n_threads, on_progress=on_progress)

    _jobs()[on] = cache.jobs().start(work, request=_Measuring(on))
    st.query_params["job"] = [_jobs()[on]]


def _jobs() -> dict[EncoderSpec, str]:
    found: dict[EncoderSpec, str] = st.session_state.setdefault("_measuring", {})
    return found
