"""The visitor's choices and cached results on the attributes page."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.studies.attributes.request import AttributeRequest
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.examples import Examples
    from leakscope.core.corpora.readers.memory_file import MemoryFile
    from leakscope.core.studies.attributes.request import InferenceResult

UPLOAD = "upload"
COUNTS = (5, 10, 20, 50)
_RESULTS: SessionCache[AttributeRequest, InferenceResult] = SessionCache("_attribute_results", 3)
inferred_of = _RESULTS.get
remember_inferred = _RESULTS.add
_EXAMPLES: SessionCache[tuple[str, ...], Examples] = SessionCache("_attributes_examples", 1)


def key_of(name: str) -> str:
    """Return the session key of a control."""
    return f"attributes_{name}"


def address(corpora: Sequence[str]) -> Address:
    """Return the page's address parameters: `?corpus=articles&labels=20&each=10&text=…`."""
    counts = [
        Parameter(name=name, key=key_of(name), default=20, options=COUNTS)
        for name in ("labels", "each")
    ]
    return Address(
        "attributes",
        (
            # A link to an upload would be useless, since its file stays in the session.
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
    """Return the typed text."""
    return str(st.session_state.get(key_of("text"), ""))


def use_random_text(unseen: Sequence[tuple[str, str]]) -> None:
    """Set the text to a random one that the attack did not train on, from a callback."""
    found, label = random.choice(unseen)
    st.session_state[key_of("text")] = found
    st.session_state["_attributes_truth"] = (found, label)


def true_label() -> str:
    """Return the true label of an unchanged random text; empty for other texts."""
    drawn, label = st.session_state.get("_attributes_truth", ("", ""))
    return str(label) if drawn and drawn == text() else ""


def restore_request(request: AttributeRequest) -> None:
    """Set the controls to the request of a job, after a reload."""
    st.session_state[key_of("corpus")] = UPLOAD if request.is_upload else request.source
    st.session_state[key_of("labels")] = request.n_labels
    st.session_state[key_of("each")] = request.n_per_label
    st.session_state[key_of("seed")] = request.seed
    if request.is_upload:
        st.session_state["_attributes_restored"] = request


def restored_upload() -> AttributeRequest | None:
    """Return the request of an upload whose job was found after a reload; None without one."""
    found: AttributeRequest | None = st.session_state.get("_attributes_restored")
    return found


def upload_examples(file: MemoryFile, request: AttributeRequest) -> Examples:
    """Return the labelled texts of an upload, cached until the file or its columns change."""
    from leakscope.core.attacks.attributes.sources import read_uploaded_examples

    text, label, group = request.text_column, request.label_column, request.group_column
    made = partial(
        run_reader, read_uploaded_examples, file, text=text, label=label, group=group or None
    )
    return _EXAMPLES.once((request.source, file.name, text, label, group), made)
