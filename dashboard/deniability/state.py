"""What one visitor has chosen on the pages of defences: beside `state`, for them alone.

Envelopes of sentences stay with the session that asked for them, a few at a time.
"""

from __future__ import annotations

import math
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.specs import EncoderSpec
from dashboard.state import TEXT_KEY, text

if TYPE_CHECKING:
    from core.defences.deniability.sentence import DeniableSentence

__all__ = [
    "ETA_KEY",
    "adopt_eta_link",
    "deniable_of",
    "draw_again",
    "drop_stale_eta_link",
    "eta",
    "noise_seed",
    "remember_deniable",
    "set_eta",
]

ETA_KEY = "eta"
_MOST_DENIABLE = 8


def adopt_eta_link(default_text: str, default_eta: float, steps: Sequence[float]) -> bool:
    """Take over text and η from the address, once per address: `?text=…&eta=75`.

    Returns whether the address names an η that does not exist.
    """
    st.session_state.setdefault(TEXT_KEY, default_text)
    if st.session_state.get(ETA_KEY) not in steps:
        st.session_state[ETA_KEY] = _nearest(default_eta, steps)
    link = (st.query_params.get("text"), st.query_params.get("eta"))
    if link == st.session_state.get("_adopted_eta_link", (None, None)):
        return bool(st.session_state.get("_refused_eta"))
    st.session_state["_adopted_eta_link"] = link
    if link[0] is not None:
        st.session_state[TEXT_KEY] = link[0]
    st.session_state["_refused_eta"] = False
    if link[1] is not None:
        try:
            asked = float(link[1])
            st.session_state[ETA_KEY] = _nearest(asked, steps)
            st.session_state["_refused_eta"] = not steps[0] <= asked <= steps[-1]
        except ValueError:
            st.session_state["_refused_eta"] = True
    return bool(st.session_state["_refused_eta"])


def drop_stale_eta_link() -> None:
    """Take text and η out of the address as soon as it no longer tells the truth."""
    linked_text, linked_eta = st.session_state.get("_adopted_eta_link", (None, None))
    is_same = linked_text in (None, text()) and linked_eta in (None, f"{eta():g}")
    if not is_same and (linked_text is not None or linked_eta is not None):
        for name in ("text", "eta", "present"):
            st.query_params.pop(name, None)
        st.session_state["_adopted_eta_link"] = (None, None)
        st.session_state["_refused_eta"] = False


def eta() -> float:
    """Return the chosen η."""
    return float(st.session_state[ETA_KEY])


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


def deniable_of(text: str, on: EncoderSpec) -> DeniableSentence | None:
    """Return the envelopes of a sentence that this session has seen."""
    return _deniable().get((text, on))


def remember_deniable(text: str, on: EncoderSpec, sentence: DeniableSentence) -> DeniableSentence:
    """Keep a sentence's envelopes for this session, the oldest giving way."""
    kept = _deniable()
    kept[text, on] = sentence
    while len(kept) > _MOST_DENIABLE:
        kept.popitem(last=False)
    return sentence


def _deniable() -> OrderedDict[tuple[str, EncoderSpec], DeniableSentence]:
    found: OrderedDict[tuple[str, EncoderSpec], DeniableSentence]
    found = st.session_state.setdefault("_deniable", OrderedDict())
    return found
