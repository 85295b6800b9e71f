"""A story as files, and from one: what is saved is made when it is asked for."""

from __future__ import annotations

import json
from functools import lru_cache, partial

import streamlit as st

from core.browser import NO_BROWSER, has_browser
from core.errors import CoreError
from core.story.deck import Deck, make_deck, today
from core.story.files import print_job, report_bytes
from core.story.format import Slide, Story
from core.story.reading import MOST_BYTES, parse_story
from core.story.views import told
from dashboard.apart import answered, printers
from dashboard.calm import show_error
from dashboard.story import state
from dashboard.visitor import share, visitor

__all__ = ["deck_of", "open_file", "save_buttons"]

_UPLOAD, _REFUSED = "upload_story", "_story_refused"

_KINDS = {
    ".pdf": ("PDF", "application/pdf", "picture_as_pdf", "Printed pages, a slide each"),
    ".pptx": (
        "PowerPoint",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "co_present",
        "Text and tables to be edited, figures as pictures, notes for the speaker",
    ),
    ".html": (
        "HTML",
        "text/html",
        "html",
        "One file that opens offline, with figures to point at, and is presented by itself; your "
        "notes for the speaker are in it",
    ),
}


def deck_of(story: Story, date: str = "") -> Deck:
    """Return the slides of a story, told from what is measured now."""
    return make_deck(
        story, date or today(), tell=lambda name, asked: _told(name, tuple(asked.items()))
    )


@lru_cache(maxsize=64)
def _told(name: str, asked: tuple[tuple[str, str], ...]) -> Slide:
    return told(name, dict(asked))


@st.cache_resource(show_spinner=False)
def _has_browser() -> bool:
    return has_browser()


def save_buttons(story: Story) -> None:
    """Draw the buttons that save a story, as reports and as a file that is opened again."""
    for suffix, (label, kind, icon, about) in _KINDS.items():
        needs_browser = suffix != ".html"
        is_possible = not needs_browser or _has_browser()
        st.download_button(
            label,
            partial(_report, story, suffix, (visitor(), share())),
            f"leakscope-story{suffix}",
            kind,
            key=f"story-save{suffix.replace('.', '-')}",
            icon=f":material/{icon}:",
            help=(f"{about}. Takes some seconds." if needs_browser else f"{about}.")
            if is_possible
            else NO_BROWSER,
            on_click="ignore",
            disabled=not is_possible,
        )
    st.download_button(
        "Story file",
        partial(_stored, story),
        "leakscope-story.json",
        "application/json",
        key="story-save-json",
        icon=":material/save:",
        help="To open it here again, or for a colleague: what is on its slides is in it",
        on_click="ignore",
    )


def _report(story: Story, suffix: str, whose: tuple[str, str]) -> bytes:
    deck = deck_of(story)
    if suffix == ".html":
        return report_bytes(deck, suffix)
    found: bytes = answered(printers(), whose, print_job, deck, suffix)
    return found


def _stored(story: Story) -> str:
    return json.dumps(story.to_dict(), ensure_ascii=False, indent=1)


def open_file() -> None:
    """Draw where a story is opened from a file, and why the last one was refused."""
    st.file_uploader(
        "Open a story",
        type="json",
        key=_UPLOAD,
        max_upload_size=MOST_BYTES // 2**20,
        help="A story file; it takes the place of yours. It stays in the memory of this computer.",
        on_change=_take,
    )
    if (error := st.session_state.get(_REFUSED)) is not None:
        show_error(error, title="This file is no story that can be opened")


def _take() -> None:
    """Take the story of the file, in the callback of the uploader."""
    file = st.session_state.get(_UPLOAD)
    st.session_state.pop(_REFUSED, None)
    if file is None:
        return
    try:
        found = parse_story(file.getvalue(), file.name)
    except CoreError as error:
        st.session_state[_REFUSED] = error
        return
    state.start_with(found)
