"""What one visitor has chosen on the page of attributes, and what came of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from core.studies.attribute_request import AttributeRequest
from dashboard.address import Address, Parameter
from dashboard.apart import parsed
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.attacks.attributes.examples import Examples
    from core.corpora.memory_file import MemoryFile
    from core.studies.attribute_request import Inferred

__all__ = [
    "COUNTS",
    "UPLOAD",
    "AttributeRequest",
    "address",
    "draw_unseen",
    "inferred_of",
    "key_of",
    "own_examples",
    "remember_inferred",
    "restore_request",
    "restored_upload",
    "text",
    "truth",
]

UPLOAD = "upload"
COUNTS = (5, 10, 20, 50)
_SEEN: Kept[AttributeRequest, Inferred] = Kept("_attribute_results", 3)
inferred_of = _SEEN.get
remember_inferred = _SEEN.add
_EXAMPLES: Kept[tuple[str, ...], Examples] = Kept("_attributes_examples", 1)


def key_of(name: str) -> str:
    """Return the key of a control of the page."""
    return f"attributes_{name}"


def address(corpora: Sequence[str]) -> Address:
    """Return what an address may ask for: `?corpus=articles&labels=20&each=10&text=…`."""
    counts = [
        Parameter(name=name, key=key_of(name), default=20, options=COUNTS)
        for name in ("labels", "each")
    ]
    return Address(
        "attributes",
        (
            # The address of a visitor's own file would tell nobody anything.
            Parameter(
                name="corpus",
                key=key_of("corpus"),
                default=corpora[0],
                options=corpora,
                write=lambda name: None if name == UPLOAD else str(name),
            ),
            *counts,
            Parameter(
                name="text", key=key_of("text"), default="", write=lambda text: str(text) or None
            ),
        ),
    )


def text() -> str:
    """Return the text whose author is asked for."""
    return str(st.session_state.get(key_of("text"), ""))


def draw_unseen(unseen: Sequence[tuple[str, str]]) -> None:
    """Take a text that no attack learned from, from a callback; its label is told beside."""
    found, label = random.choice(unseen)
    st.session_state[key_of("text")] = found
    st.session_state["_attributes_truth"] = (found, label)


def truth() -> str:
    """Return the label of the text if it was drawn and stands as it was; else nothing."""
    drawn, label = st.session_state.get("_attributes_truth", ("", ""))
    return str(label) if drawn and drawn == text() else ""


def restore_request(request: AttributeRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    st.session_state[key_of("corpus")] = UPLOAD if request.is_upload else request.source
    st.session_state[key_of("labels")] = request.n_labels
    st.session_state[key_of("each")] = request.n_per_label
    st.session_state[key_of("seed")] = request.seed
    if request.is_upload:
        st.session_state["_attributes_restored"] = request


def restored_upload() -> AttributeRequest | None:
    """Return the request for an upload whose job was found again after a reload."""
    found: AttributeRequest | None = st.session_state.get("_attributes_restored")
    return found


def own_examples(file: MemoryFile, request: AttributeRequest) -> Examples:
    """Return the labelled texts of an upload, read once while nothing changes."""
    from core.attacks.attributes.sources import read_uploaded

    text, label, group = request.text_column, request.label_column, request.group_column
    made = partial(parsed, read_uploaded, file, text=text, label=label, group=group or None)
    return _EXAMPLES.once((request.source, file.name, text, label, group), made)
