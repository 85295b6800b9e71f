"""The visitor's choices on the deniability page, and the session's noise seed.

The statistics of a few sentences are cached in the session that requested them.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.specs import EncoderSpec
from leakscope.dashboard.address import Address, NotOffered, Parameter
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import text_parameter

if TYPE_CHECKING:
    from leakscope.core.defences.deniability.sentence import DeniableSentence

ETA_KEY = "eta"
BESIDE_KEY = "before_and_after"
RECOVERED_KEY = "corpus-recovered"
RECOVERED = range(1, 91)
"""The shares of tokens that may stay unchanged, in per cent."""
_SENTENCES: SessionCache[tuple[str, EncoderSpec], DeniableSentence] = SessionCache("_deniable", 8)
deniable_of = _SENTENCES.get
remember_deniable = _SENTENCES.add


def address(steps: Sequence[float]) -> Address:
    """Build the page's address parameters; η is rounded to the nearest slider step."""

    def read(text: str) -> float:
        """Parse η and return the nearest step; raise NotOffered outside the range."""
        asked = float(text)
        near = _nearest_step(asked, steps)
        if not steps[0] <= asked <= steps[-1]:
            raise NotOffered(near)
        return near

    return Address(
        "deniability",
        (
            text_parameter(),
            Parameter(
                name="eta",
                key=ETA_KEY,
                read=read,
                write=lambda eta: f"{eta:g}",
                hint=f"η can be {steps[0]:g} to {steps[-1]:g}.",
            ),
            Parameter(
                name="unchanged",
                key=RECOVERED_KEY,
                default=20,
                options=RECOVERED,
                hint=f"unchanged can be {RECOVERED[0]} to {RECOVERED[-1]}.",
            ),
        ),
    )


def keep_eta(start: float, steps: Sequence[float]) -> None:
    """Leave the session's η if it is a slider step, else set the step nearest to `start`."""
    if st.session_state.get(ETA_KEY) not in steps:
        st.session_state[ETA_KEY] = _nearest_step(start, steps)


def set_eta(value: float, steps: Sequence[float]) -> None:
    """Set the session's η to the greatest step not above a value, as a callback."""
    st.session_state[ETA_KEY] = max((s for s in steps if s <= value), default=steps[0])


def _nearest_step(value: float, steps: Sequence[float]) -> float:
    """Return the step whose ratio to the value is closest to 1.

    Raises
    ------
    ValueError
        The value is not a positive number.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"{value} is not a valid η")
    return min(steps, key=lambda step: abs(math.log(step / value)))


def noise_seed() -> int:
    """Return the session's random noise seed, drawn by a secure generator on first use."""
    if "_noise_seed" not in st.session_state:
        draw_again()
    return int(st.session_state["_noise_seed"])


def draw_again() -> None:
    """Replace the session's noise seed with a new random one."""
    st.session_state["_noise_seed"] = secrets.randbits(256)
