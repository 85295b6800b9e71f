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
from dashboard.address import Address, NotOffered, Parameter
from dashboard.calm import show_error
from dashboard.inversion import answers
from dashboard.progress import follow

__all__ = [
    "address",
    "adopt_encoder_link",
    "chosen_encoder",
    "encoder_picker",
    "measure_card",
]

ENCODER_KEY = "encoder"
_BUNDLED = answers.ENCODER.name


@dataclass(frozen=True)
class _Measuring:
    """What a job of this page was asked for."""

    on: EncoderSpec


def address() -> Address:
    """Return what an address may ask for: `?encoder=…`, on more than one page.

    It opens only encoders that were measured on this computer: following a link must not fetch a
    model.
    """
    encoder = Parameter(
        name="encoder",
        key=ENCODER_KEY,
        default=_BUNDLED,
        read=_measured_before,
        write=lambda name: None if name == _BUNDLED else str(name).strip(),
        hint="The encoder was not measured on this computer. Type its name under Encoder to open "
        "it.",
    )
    return Address("encoder", (encoder,))


def _measured_before(name: str) -> str:
    if name != _BUNDLED and name not in known_encoders():
        raise NotOffered
    return name


def adopt_encoder_link() -> None:
    """Take over the encoder from the address, or from a job that measures one."""
    for job_id in st.query_params.get_all("job"):
        job = cache.jobs().view(job_id)
        if job is None or not isinstance(job.request, _Measuring):
            continue
        if job.state is JobState.DONE:
            st.query_params.pop("job", None)
        if job.request.on not in _jobs():  # the page was reloaded meanwhile
            _jobs()[job.request.on] = job_id
            st.session_state[ENCODER_KEY] = job.request.on.name
    address().adopt()


def chosen_encoder() -> EncoderSpec:
    """Return the encoder in force."""
    return EncoderSpec(name=str(st.session_state.get(ENCODER_KEY) or _BUNDLED).strip())


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
