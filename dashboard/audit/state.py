"""The visitor's choices and cached reports on the audit page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.session_results import SessionCache

COUNTS = (100, 200, 500, 1_000)
FILE, STORE = "A file", "A path or a store"
WHAT_IF = {
    "storage": "Other storage formats",
    "remedy": "Defences",
    "redaction": "Personal data removed before encoding",
    "rotation": "A rotation with a secret key",
}
"""Titles of `leakscope.core.audit.what_if.COMPARISONS`."""

WHERE_KEY, PLACE_KEY, COUNT_KEY = "audit_where", "audit_place", "audit_n"
ENCODER_KEY, COLLECTION_KEY, SEED_KEY = "audit_encoder", "audit_collection", "audit_seed"
WORDS_KEY, DEFENCE_KEY, PERSONAL_KEY = "audit_words", "audit_defence", "audit_personal"
WHAT_IF_KEY = "audit_what_if"

_REPORTS: SessionCache[AuditRequest, dict[str, Any]] = SessionCache("_audits", 3)
report_of = _REPORTS.get
remember_report = _REPORTS.add
_CURRENT = "_audit_current"
"""Session key of the request that the page shows."""


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """The source, texts and settings that identify an audit.

    Attributes
    ----------
    source : str
        The SHA-256 of an upload, or a reference for `open_source`.
    name : str
        The upload's file name; empty for a path or a store.
    texts : str
        The SHA-256 of the uploaded texts; empty without texts.
    what_if : tuple of str
        Keys of `leakscope.core.audit.what_if.COMPARISONS`.
    """

    source: str
    name: str
    collection: str
    texts: str
    encoder: str
    defence: str
    looks_for_personal: bool
    what_if: tuple[str, ...]
    n: int
    seed: int


def address() -> Address:
    """Build the page's address parameters: `?n=500`; uploads are never in a URL."""
    return Address("audit", (Parameter(name="n", key=COUNT_KEY, default=500, options=COUNTS),))


def request_for(source: str, *, name: str = "", texts: str = "") -> AuditRequest:
    """Build the audit request for a source from the settings in the session."""
    chosen = st.session_state
    return AuditRequest(
        source=source,
        name=name,
        collection=str(chosen.get(COLLECTION_KEY, "")).strip() if name else "",
        texts=texts,
        encoder=str(chosen.get(ENCODER_KEY, "")).strip(),
        defence=str(chosen.get(DEFENCE_KEY, "")).strip(),
        looks_for_personal=bool(chosen.get(PERSONAL_KEY, True)),
        what_if=tuple(chosen.get(WHAT_IF_KEY, ())),
        n=int(chosen[COUNT_KEY]),
        seed=int(chosen[SEED_KEY]),
    )


def restore_request(request: AuditRequest) -> None:
    """Set the page's controls to a job's request, and make it current, after a reload."""
    st.session_state[COUNT_KEY] = request.n
    st.session_state[SEED_KEY] = request.seed
    st.session_state[ENCODER_KEY] = request.encoder
    st.session_state[COLLECTION_KEY] = request.collection
    st.session_state[DEFENCE_KEY] = request.defence
    st.session_state[PERSONAL_KEY] = request.looks_for_personal
    st.session_state[WHAT_IF_KEY] = list(request.what_if)
    make_current(request)
    if not request.name:
        st.session_state[WHERE_KEY] = STORE
        st.session_state[PLACE_KEY] = request.source


def make_current(request: AuditRequest) -> None:
    """Store the audit request that the page shows; it outlives the controls."""
    st.session_state[_CURRENT] = request


def current_request() -> AuditRequest | None:
    """Return the audit request that the page shows; None if there is none."""
    found: AuditRequest | None = st.session_state.get(_CURRENT)
    return found
