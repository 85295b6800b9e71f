"""From a choice of texts to what is inferred: known from before, or as a job with progress."""

from __future__ import annotations

from functools import partial

from core.attacks.attributes.examples import Examples
from core.studies.attribute_request import AttributeRequest, Inferred
from dashboard import work
from dashboard.attributes import state

__all__ = ["adopt_attribute_job", "inferred"]

_NOTE = (
    "Encodes the labelled sentences and those under attack, at most some 3,500, and trains the "
    "probe and its baseline on each number of them: seconds to a few minutes, on this computer."
)


def inferred(request: AttributeRequest, examples: Examples | None) -> Inferred | None:
    """Return what came of a request, or draw what starts, follows and stops its job.

    Parameters
    ----------
    examples : Examples or None
        Of an upload; a corpus is read within the job.
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
        again="Infer after all",
        is_primary=True,
    )
    done = work.take(request, offer)
    return state.remember_inferred(request, done.result) if done else None


def _start(examples: Examples | None, request: AttributeRequest) -> None:
    if request.is_upload and examples is None:  # the file went when the page was reloaded
        work.drop(request)
        return
    from core.studies.attribute_job import infer_attribute  # takes seconds: only who infers waits

    work.start(request, infer_attribute, request, examples)


def adopt_attribute_job() -> None:
    """Take up the job that the address names, after the page was reloaded."""
    for request in work.adopt(AttributeRequest):
        state.restore_request(request)
