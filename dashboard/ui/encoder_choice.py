"""The choice of a page's encoder, and the job that measures a new encoder's tokens."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from leakscope.core.defences.deniability.measured import known_encoders, measure_encoder
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import EncoderSpec
from leakscope.dashboard.address import Address, NotOffered, Parameter
from leakscope.dashboard.inversion import answers
from leakscope.dashboard.server import policy
from leakscope.dashboard.ui import work

ENCODER_KEY = "encoder"
_BUNDLED = answers.ENCODER.name


@dataclass(frozen=True)
class _Measuring:
    """The request of a job that measures all tokens of an encoder."""

    on: EncoderSpec


def address() -> Address:
    """Build the address parameter `?encoder=…`, which several pages share.

    A link opens only encoders that were measured on this computer: it must not download a model.
    """
    encoder = Parameter(
        name="encoder",
        key=ENCODER_KEY,
        default=_BUNDLED,
        read=_check_offered,
        write=lambda name: None if name == _BUNDLED else str(name).strip(),
        hint="This encoder has not been measured on this computer. Type its name under Encoder to "
        "open it."
        if accepts_any_encoder()
        else "This server opens only the encoders listed under Encoder.",
    )
    return Address("encoder", (encoder,))


def accepts_any_encoder() -> bool:
    """Return whether visitors may load any encoder by its name."""
    return policy.current_policy().encoders is None


def _check_offered(name: str) -> str:
    """Return an encoder's name unchanged; raise NotOffered if visitors cannot open it by link."""
    if name not in _offered_encoders():
        raise NotOffered
    return name


def _offered_encoders() -> list[str]:
    """Return the names of encoders to select from: bundled, measured here, and allowed ones.

    Other measured encoders are hidden: their names may be paths of folders.
    """
    allowed = policy.current_policy()
    measured = [name for name in known_encoders() if allowed.may_load(name)]
    return list(dict.fromkeys([_BUNDLED, *measured, *(allowed.encoders or ())]))


def adopt_encoder_link() -> None:
    """Set the session's encoder from the URL, or from a measuring job that the URL names."""
    for request in work.adopt_jobs(_Measuring):  # after a reload
        st.session_state[ENCODER_KEY] = request.on.name
    work.drop_done(_Measuring)  # the results are on disk
    address().adopt()


def chosen_encoder() -> EncoderSpec:
    """Return the selected encoder's spec; raise if this server does not allow the encoder.

    Raises
    ------
    InvalidInputError
        Visitors of this server may not load the encoder.
    """
    name = str(st.session_state.get(ENCODER_KEY) or _BUNDLED).strip()
    if not policy.current_policy().may_load(name):
        del st.session_state[ENCODER_KEY]
        raise InvalidInputError(
            "This server does not allow this encoder. Reload the page to continue with the bundled "
            "one. The operator of the server can allow another: leakscope serve --allow-encoder "
            "NAME."
        )
    return EncoderSpec(name=name)


def is_typed(on: EncoderSpec) -> bool:
    """Return whether an encoder's name was typed: it is neither bundled nor listed."""
    return on.name not in (_BUNDLED, *(policy.current_policy().encoders or ()))


def encoder_picker() -> None:
    """Draw the selector of the encoder: bundled, measured, listed or typed."""
    names = _offered_encoders()
    here = chosen_encoder().name
    st.selectbox(
        "Encoder",
        names if here in names else [*names, here],
        key=ENCODER_KEY,
        accept_new_options=accepts_any_encoder(),
        required=True,
        persist_state="session",
        format_func=lambda name: "all-MiniLM-L6-v2 (bundled)" if name == _BUNDLED else name,
        help="Choose an encoder, or type `mlm:` or `st:` followed by a folder or the name of a "
        "Hugging Face model, such as `mlm:bert-base-uncased`. A model that is not on this computer "
        "is downloaded."
        if accepts_any_encoder()
        else "The operator of this server decides which encoders are listed.",
    )


def measure_card(on: EncoderSpec) -> None:
    """Draw the button that measures all tokens of an encoder, or the progress of this job."""
    offer = work.Offer(
        label="Measure all tokens",
        key="measure-tokens",
        on_click=lambda request: work.start(request, measure_encoder, request.on),
        failed="The tokens could not be measured",
    )
    work.draw_job(_Measuring(on), offer)
