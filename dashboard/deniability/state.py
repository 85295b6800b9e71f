"""What one visitor has chosen on the page of deniability, for them alone.

Envelopes of sentences stay with the session that asked for them, a few at a time.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.specs import EncoderSpec
from dashboard.address import Address, NotOffered, Parameter
from dashboard.kept import Kept
from dashboard.state import text_parameter

if TYPE_CHECKING:
    from core.defences.deniability.sentence import DeniableSentence

__all__ = [
    "BESIDE_KEY",
    "ETA_KEY",
    "address",
    "deniable_of",
    "draw_again",
    "keep_eta",
    "noise_seed",
    "remember_deniable",
    "set_eta",
]

ETA_KEY = "eta"
BESIDE_KEY = "before_and_after"
_SEEN: Kept[tuple[str, EncoderSpec], DeniableSentence] = Kept("_deniable", 8)
deniable_of = _SEEN.get
remember_deniable = _SEEN.add


def address(steps: Sequence[float]) -> Address:
    """Return what an address may ask for: `?text=…&eta=75`; the step nearest to it is taken."""

    def read(text: str) -> float:
        asked = float(text)
        near = _nearest(asked, steps)
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
                hint=f"η runs from {steps[0]:g} to {steps[-1]:g}.",
            ),
        ),
    )


def keep_eta(start: float, steps: Sequence[float]) -> None:
    """Let η stand if it is a step of this encoder's, else start anew."""
    if st.session_state.get(ETA_KEY) not in steps:
        st.session_state[ETA_KEY] = _nearest(start, steps)


def set_eta(value: float, steps: Sequence[float]) -> None:
    """Move the slider to the greatest step that is not above a value, from a callback."""
    st.session_state[ETA_KEY] = max((s for s in steps if s <= value), default=steps[0])


def _nearest(value: float, steps: Sequence[float]) -> float:
    """Return the step nearest by ratio.

    Raises
    ------
    ValueError
        Not a positive number.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"{value} is no η")
    return min(steps, key=lambda step: abs(math.log(step / value)))


def noise_seed() -> int:
    """Return the cryptographic seed of what this session draws, made when first needed."""
    if "_noise_seed" not in st.session_state:
        draw_again()
    return int(st.session_state["_noise_seed"])


def draw_again() -> None:
    """Replace the seed: the next draw is another one."""
    st.session_state["_noise_seed"] = secrets.randbits(256)
