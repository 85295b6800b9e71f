"""Personal data in the sentence, and what an attacker learns about it from the vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.audit.summary import ANSWERS_MEAN
from leakscope.core.findings.prose import plain
from leakscope.core.protocols import Vectors
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.ui import work
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import set_text

if TYPE_CHECKING:
    from leakscope.core.audit.personal.report import PersonalReport

_NOTE = (
    "Names, e-mail addresses, telephone numbers, IBANs, card numbers, postal addresses, national "
    "identifiers and dates of birth. An attacker who knows the rest of the sentence ranks each one "
    "among 1,000 of its kind, in about two seconds."
)


@dataclass(frozen=True)
class PersonalRequest:
    """A request for the test: the sentence, and the words that the attacks recovered."""

    text: str
    words: frozenset[str]


_REPORTS: SessionCache[PersonalRequest, PersonalReport] = SessionCache("_personal_data", 16)


def adopt_job() -> None:
    """Restore the sentence from a personal-data job that the URL names, after a reload."""
    for request in work.adopt_jobs(PersonalRequest):
        set_text(request.text)


def personal_panel(text: str, vector: Vectors, readings: Sequence[Reading]) -> None:
    """Draw the personal-data test of a sentence: its job, then the result per identifier."""
    words = frozenset().union(*(reading.recovery.word_set for reading in readings))
    request = PersonalRequest(text, words)
    work.drop_others(PersonalRequest, lambda other: other.text == text)
    with st.expander("Personal data in this sentence", icon=":material/id_card:"):
        report = _REPORTS.get(request) or _finished_report(request, vector)
        if report is not None:
            _show(text, report)


def _finished_report(request: PersonalRequest, vector: Vectors) -> PersonalReport | None:
    """Return the finished job's report, or draw the job's controls and return None."""
    done = work.draw_job(
        request,
        work.Offer(
            label="Test the personal data",
            key="personal-start",
            on_click=partial(_start, vector),
            failed="The personal data could not be tested",
            note=_NOTE,
        ),
    )
    return None if done is None else _REPORTS.add(request, done.result)


def _start(vector: Vectors, request: PersonalRequest) -> None:
    """Start the background job that tests the personal data in a sentence."""
    from leakscope.core.audit.personal.report import (
        measure_text,  # libraries that take a second to import
    )

    work.start(request, measure_text, request.text, vector, ENCODER, request.words)


def _show(text: str, report: PersonalReport) -> None:
    """Draw a report: its sentence and the finding of each identifier."""
    st.markdown(plain(report.sentence))
    for found in report.findings:
        value = plain(text[found.start : found.end])
        st.markdown(f"- **{value}**: {plain(found.sentence)}")
    if report.findings:
        st.caption(ANSWERS_MEAN)
