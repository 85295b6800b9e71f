"""Run attribute inference: from the session's cache, or in a background job."""

from __future__ import annotations

from functools import partial

from leakscope.core.attacks.attributes.examples import Examples
from leakscope.core.studies.attributes.request import AttributeRequest, InferenceResult
from leakscope.dashboard.attributes import state
from leakscope.dashboard.ui import work

_NOTE = (
    "This encodes up to about 3,500 sentences: those with a known label, and those whose label the "
    "attack has to find. It then trains the attack, and a simpler method beside it, with few and "
    "with many labelled texts. This takes seconds to a few minutes on this computer."
)


def inference_result(
    request: AttributeRequest, examples: Examples | None
) -> InferenceResult | None:
    """Return the request's result, or draw the controls of its job and return None.

    Parameters
    ----------
    examples : Examples or None
        The examples of an upload; a corpus is read within the job.
    """
    work.drop_others(AttributeRequest, lambda other: other == request)
    known = state.inferred_of(request)
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
    return state.remember_inferred(request, done.result) if done else None


def _start(examples: Examples | None, request: AttributeRequest) -> None:
    """Start the attribute-inference job of a request; drop it if its upload was lost."""
    if request.is_upload and examples is None:  # the reload has lost the file
        work.drop(request)
        return
    from leakscope.core.studies.attributes.job import (
        infer_attribute,  # takes seconds to import
    )

    work.start(request, infer_attribute, request, examples)


def adopt_attribute_job() -> None:
    """Restore the controls from a job that the URL names, after a reload."""
    for request in work.adopt_jobs(AttributeRequest):
        state.restore_request(request)
