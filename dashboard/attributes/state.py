"""The visitor's choices on the attributes page, its cached results and its background job."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.studies.attributes.request import AttributeRequest, InferenceResult
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.attacks.attributes.examples import Examples
    from leakscope.core.corpora.readers.memory_file import MemoryFile

_NOTE = (
    "This encodes up to about 3,500 sentences: those with a known label, and those whose label the "
    "attack has to find. It then trains the attack, and a simpler method beside it, with few and "
    "with many labelled texts. This takes seconds to a few minutes on this computer."
)

UPLOAD = "upload"
COUNTS = (5, 10, 20, 50)
_RESULTS: SessionCache[AttributeRequest, InferenceResult] = SessionCache("_attribute_results", 3)
inferred_of = _RESULTS.get
remember_inferred = _RESULTS.add
_EXAMPLES: SessionCache[tuple[str, ...], Examples] = SessionCache("_attributes_examples", 1)


def key_of(name: str) -> str:
    """Return the session key of a named control."""
    return f"attributes_{name}"


def address(corpora: Sequence[str]) -> Address:
    """Build the page's address parameters: `?corpus=articles&labels=20&each=10&text=…`."""
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
    """Return the text that the visitor typed, from the session."""
    return str(st.session_state.get(key_of("text"), ""))


def use_random_text(unseen: Sequence[tuple[str, str]]) -> None:
    """Put a random text that the attack did not train on into the session, as a callback."""
    found, label = random.choice(unseen)
    st.session_state[key_of("text")] = found
    st.session_state["_attributes_truth"] = (found, label)


def true_label() -> str:
    """Return the true label of the random text if it was not edited; "" for other texts."""
    drawn, label = st.session_state.get("_attributes_truth", ("", ""))
    return str(label) if drawn and drawn == text() else ""


def restore_request(request: AttributeRequest) -> None:
    """Set the page's controls to a job's request, after a reload."""
    st.session_state[key_of("corpus")] = UPLOAD if request.is_upload else request.source
    st.session_state[key_of("labels")] = request.n_labels
    st.session_state[key_of("each")] = request.n_per_label
    st.session_state[key_of("seed")] = request.seed
    if request.is_upload:
        st.session_state["_attributes_restored"] = request


def restored_upload() -> AttributeRequest | None:
    """Return the request of an upload whose job was found after a reload; None if there is none."""
    found: AttributeRequest | None = st.session_state.get("_attributes_restored")
    return found


def upload_examples(file: MemoryFile, request: AttributeRequest) -> Examples:
    """Read an upload's labelled texts in another process; cached for the file and its columns."""
    from leakscope.core.attacks.attributes.sources import read_uploaded_examples

    text, label, group = request.text_column, request.label_column, request.group_column
    made = partial(
        run_reader, read_uploaded_examples, file, text=text, label=label, group=group or None
    )
    return _EXAMPLES.once((request.source, file.name, text, label, group), made)


def inference_result(
    request: AttributeRequest, examples: Examples | None
) -> InferenceResult | None:
    """Return the request's attack result; if there is none yet, draw its job and return None.

    Parameters
    ----------
    examples : Examples or None
        The examples of an upload; a corpus is read within the job.
    """
    work.drop_others(AttributeRequest, lambda other: other == request)
    known = inferred_of(request)
    if known is not None:
        return known
    if request.is_upload and examples is None and not work.is_known(request):
        return None
    offer = work.Offer(
        label="Infer",
        key="attributes-infer",
        on_click=partial(_start, examples),
        failed="The attribute could not be inferred",
        note=_NOTE,
        restart_label="Infer after all",
        is_primary=True,
    )
    done = work.draw_job(request, offer)
    return remember_inferred(request, done.result) if done else None


def _start(examples: Examples | None, request: AttributeRequest) -> None:
    """Start the background job that infers an attribute; drop it if the upload was lost."""
    if request.is_upload and examples is None:  # the reload has lost the file
        work.drop(request)
        return
    from leakscope.core.studies.attributes.job import infer_attribute  # takes seconds to import

    work.start(request, infer_attribute, request, examples)


def adopt_attribute_job() -> None:
    """Restore the controls from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(AttributeRequest):
        restore_request(request)
