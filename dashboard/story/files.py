"""Save a story as a report or a story file, and open a story file."""

from __future__ import annotations

import json
from functools import lru_cache, partial

import streamlit as st

from leakscope.core.browser import NO_BROWSER, has_browser
from leakscope.core.errors import CoreError
from leakscope.core.findings.finding import Finding
from leakscope.core.findings.registry import build_view
from leakscope.core.story.deck import Deck, make_deck, today
from leakscope.core.story.files import print_job, report_bytes
from leakscope.core.story.format import Story
from leakscope.core.story.reading import MOST_BYTES, parse_story
from leakscope.dashboard.server.reader_processes import printers, run_and_wait
from leakscope.dashboard.server.visitor import share, visitor
from leakscope.dashboard.story import state
from leakscope.dashboard.ui.errors import show_error

_UPLOAD, _REFUSED = "upload_story", "_story_refused"

_KINDS = {
    ".pdf": (
        "PDF",
        "application/pdf",
        "picture_as_pdf",
        "Printed pages, one slide each, and an appendix",
    ),
    ".pptx": (
        "PowerPoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "co_present",
        "Editable text and tables, figures as pictures, speaker notes",
    ),
    ".html": (
        "HTML",
        "text/html",
        "html",
        "One file that opens and presents offline, with interactive figures and your speaker notes",
    ),
}


def build_deck(story: Story, date: str = "") -> Deck:
    """Build a story's slides as a Deck; findings not stored in it come from current results."""
    return make_deck(
        story,
        date or today(),
        build=lambda name, asked: _cached_finding(name, tuple(asked.items())),
    )


@lru_cache(maxsize=64)
def _cached_finding(name: str, asked: tuple[tuple[str, str], ...]) -> Finding:
    """Build the finding of a named view with the given parameters, cached."""
    return build_view(name, dict(asked))


@st.cache_resource(show_spinner=False)
def can_print() -> bool:
    """Return whether a browser that renders PDF and PowerPoint reports is installed; cached."""
    return has_browser()


def save_buttons(story: Story) -> None:
    """Draw the buttons that download a story as PDF, PowerPoint, HTML or story file."""
    for suffix, (label, kind, icon, about) in _KINDS.items():
        needs_browser = suffix != ".html"
        is_possible = not needs_browser or can_print()
        st.download_button(
            label,
            partial(_story_report, story, suffix, (visitor(), share())),
            f"leakscope-story{suffix}",
            kind,
            key=f"story-save{suffix.replace('.', '-')}",
            icon=f":material/{icon}:",
            help=(f"{about}. Takes a few seconds." if needs_browser else f"{about}.")
            if is_possible
            else NO_BROWSER,
            on_click="ignore",
            disabled=not is_possible,
        )
    st.download_button(
        "Story file",
        lambda: json.dumps(story.to_dict(), ensure_ascii=False, indent=1),
        "leakscope-story.json",
        "application/json",
        key="story-save-json",
        icon=":material/save:",
        help="Open it here again, or share it: it contains everything on the slides",
        on_click="ignore",
    )


def _story_report(story: Story, suffix: str, whose: tuple[str, str]) -> bytes:
    """Render a story's report; return the bytes of a file with this suffix."""
    return report_file(build_deck(story), suffix, whose)


def report_file(deck: Deck, suffix: str, whose: tuple[str, str]) -> bytes:
    """Render a deck to bytes: HTML here, PDF or PowerPoint in another process."""
    if suffix == ".html":
        return report_bytes(deck, suffix)
    found: bytes = run_and_wait(printers(), whose, print_job, deck, suffix)
    return found


def story_upload() -> None:
    """Draw the upload that opens a story file, and why the last file was refused."""
    st.file_uploader(
        "Open a story",
        type="json",
        key=_UPLOAD,
        max_upload_size=MOST_BYTES // 2**20,
        help="A story file. It replaces your story and stays in the memory of this computer.",
        on_change=_open_upload,
    )
    if (error := st.session_state.get(_REFUSED)) is not None:
        show_error(error, title="This file cannot be opened as a story")


def _open_upload() -> None:
    """Replace the session's story with the uploaded one, or store the error, as a callback."""
    file = st.session_state.get(_UPLOAD)
    st.session_state.pop(_REFUSED, None)
    if file is None:
        return
    try:
        found = parse_story(file.getvalue(), file.name)
    except CoreError as error:
        st.session_state[_REFUSED] = error
        return
    state.replace_story(found)
