"""Run an audit: from the session's cache, or in a background job."""

from __future__ import annotations

from functools import partial
from typing import Any

from leakscope.core.audit.audit import AuditSpec
from leakscope.core.defences.spec_parser import read_defence
from leakscope.dashboard.audit import state
from leakscope.dashboard.audit.controls import AuditInput
from leakscope.dashboard.audit.state import AuditRequest
from leakscope.dashboard.server import policy
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.errors import show_error

_IDENTIFIERS = 20
"""The most items of personal data to test; each takes about two seconds."""
_NOTE = "Reads all vectors and attacks a sample: one to five minutes on this computer."


def adopt_audit_job() -> None:
    """Restore the controls from an audit job that the URL names, after a reload."""
    for request in work.adopt_jobs(AuditRequest):
        state.restore_request(request)


def report_for(chosen: AuditInput | None) -> tuple[AuditRequest, dict[str, Any]] | None:
    """Return the current request and its report; if there is none, draw its job and return None.

    Raises
    ------
    InvalidInputError
        The defence does not exist.
    """
    if chosen is not None:
        state.make_current(chosen.request)
    request = state.current_request()
    if request is None:
        return None
    work.drop_others(AuditRequest, lambda other: other == request)
    known = state.report_of(request)
    if known is not None:
        return request, known
    if chosen is None and not work.is_known(request):  # the reload has lost the file
        return None
    if request.encoder and not policy.current_policy().may_load(request.encoder):
        show_error(
            "This server does not let visitors load this encoder. The operator can allow it: "
            "leakscope serve --allow-encoder NAME.",
            title="This encoder cannot be used",
        )
        return None
    if request.defence:
        read_defence(request.defence)  # reports a mistake before the job starts
    offer = work.Offer(
        label="Audit these vectors",
        key="audit-start",
        on_click=partial(_start, chosen),
        failed="The vectors could not be audited",
        note=_NOTE,
        restart_label="Audit them again",
        is_primary=True,
    )
    done = work.draw_job(request, offer)
    return (request, state.remember_report(request, done.result)) if done else None


def _start(chosen: AuditInput | None, request: AuditRequest) -> None:
    """Start the background audit with the controls' latest settings; drop it if files were lost."""
    if chosen is None:
        work.drop(request)
        return
    from leakscope.core.audit.job import run_audit  # takes seconds to import
    from leakscope.core.studies.tradeoff.choice import recommended_defences
    from leakscope.core.studies.tradeoff.summary import shipped_tradeoff

    # Read the settings again: the button was drawn before the latest change.
    request = state.request_for(request.source, name=request.name, texts=request.texts)
    spec = AuditSpec(
        n=request.n,
        seed=request.seed,
        encoder=request.encoder or None,
        defence=read_defence(request.defence) if request.defence else None,
        n_identifiers=_IDENTIFIERS if request.looks_for_personal else 0,
        what_if=request.what_if,
        remedies=recommended_defences(shipped_tradeoff()) if "remedy" in request.what_if else (),
    )
    source = request.source if chosen.vectors is None else chosen.vectors
    work.start(request, run_audit, source, request.collection, chosen.texts, spec)
