"""Which encoder a page is about, and the job that measures one that is new."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.defences.deniability.job import measure_encoder
from core.defences.deniability.measured import known_encoders
from core.errors import InvalidInputError
from core.specs import EncoderSpec
from dashboard import policy, work
from dashboard.address import Address, NotOffered, Parameter
from dashboard.inversion import answers

__all__ = [
    "address",
    "adopt_encoder_link",
    "chosen_encoder",
    "encoder_picker",
    "is_typed",
    "measure_card",
    "takes_any",
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
        "it."
        if takes_any()
        else "This server opens the encoders that are listed under Encoder.",
    )
    return Address("encoder", (encoder,))


def takes_any() -> bool:
    """Return whether a visitor may have any encoder loaded by its name."""
    return policy.in_force().encoders is None


def _measured_before(name: str) -> str:
    if name not in _offered():
        raise NotOffered
    return name


def _offered() -> list[str]:
    """Return what ships, what was measured on this computer and may be loaded, and what is listed.

    Other names, which may be those of folders, are nothing that a visitor should see.
    """
    allowed = policy.in_force()
    measured = [name for name in known_encoders() if allowed.may_load(name)]
    return list(dict.fromkeys([_BUNDLED, *measured, *(allowed.encoders or ())]))


def adopt_encoder_link() -> None:
    """Take over the encoder from the address, or from a job that measures one."""
    for request in work.adopt(_Measuring):  # the page was reloaded meanwhile
        st.session_state[ENCODER_KEY] = request.on.name
    work.drop_done(_Measuring)  # what it measured is on disk
    address().adopt()


def chosen_encoder() -> EncoderSpec:
    """Return the encoder in force.

    Raises
    ------
    InvalidInputError
        Visitors of this server may not load it.
    """
    name = str(st.session_state.get(ENCODER_KEY) or _BUNDLED).strip()
    if not policy.in_force().may_load(name):
        del st.session_state[ENCODER_KEY]
        raise InvalidInputError(
            "Visitors of this server may load the encoders that are listed for it, and this is "
            "none of them. Whoever runs it can list one: leakscope serve --allow-encoder NAME. "
            "Reload the page to go on with the bundled encoder."
        )
    return EncoderSpec(name=name)


def is_typed(on: EncoderSpec) -> bool:
    """Return whether an encoder is none of those that ship or are listed: its name was typed."""
    return on.name not in (_BUNDLED, *(policy.in_force().encoders or ()))


def encoder_picker() -> None:
    """Draw the choice of the encoder: bundled, measured before, listed, or typed."""
    names = _offered()
    here = chosen_encoder().name
    st.selectbox(
        "Encoder",
        names if here in names else [*names, here],
        key=ENCODER_KEY,
        accept_new_options=takes_any(),
        required=True,
        persist_state="session",
        format_func=lambda name: "all-MiniLM-L6-v2 (bundled)" if name == _BUNDLED else name,
        help="Pick one, or type `mlm:` or `st:` and the name of a model of the Hugging Face hub "
        "or a folder, such as `mlm:bert-base-uncased`. A model that is not on this computer is "
        "fetched from the hub."
        if takes_any()
        else "Whoever runs this server lists the encoders that it opens.",
    )


def measure_card(on: EncoderSpec) -> None:
    """Draw what measures all tokens of an encoder, or how far it is."""
    offer = work.Offer(
        label="Measure all tokens",
        key="measure-tokens",
        on_click=_start,
        failed="The tokens could not be measured",
    )
    work.take(_Measuring(on), offer)


def _start(request: _Measuring) -> None:
    work.start(request, measure_encoder, request.on)
