"""Controls that several pages share: the sentence, its samples, and the presentation mode."""

from __future__ import annotations

import random
from typing import Any

import streamlit as st

from leakscope.core.encoders.white_box import words_read
from leakscope.core.protocols import Encoder
from leakscope.dashboard import cache
from leakscope.dashboard.ui import state
from leakscope.dashboard.ui.errors import error_boundary

_LONG, _ASKED = "_has_area", "_asked_for_area"
_LINE = 200
"""The longest text that is shown in one line, in characters."""
_PASTED = 50
"""A text that grows by more characters at once was pasted, not typed."""

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def sentence_input(
    placeholder: str = "Type a sentence; the fast attacks answer as you type",
) -> None:
    """Draw the text input, which updates while typing; a text area for long texts.

    A long text from a link, a corpus or the clipboard gets a text area, as does a visitor who
    chooses one.
    """
    if uses_text_area():
        _text_area()
        return
    st.text_input(
        "Your sentence",
        key=state.TEXT_KEY,
        live="300ms",
        autocomplete="off",
        persist_state="session",
        placeholder=placeholder,
        help="Your text stays in the memory of this computer: it is not stored, logged or sent. "
        "The attacks see only its embedding; the text serves to mark which words they got right.",
    )


def uses_text_area() -> bool:
    """Return whether the text is typed in a text area: by choice, or as a long one was pasted.

    The control changes only when a text is set or pasted, never while typing.
    """
    here, seen = state.text(), st.session_state.get(state.SEEN_KEY)
    if seen is None or len(here) - len(seen) > _PASTED:
        st.session_state[_LONG] = len(here) > _LINE or bool(st.session_state.get(_ASKED))
    st.session_state[state.SEEN_KEY] = here
    return bool(st.session_state[_LONG])


def _use_area(is_long: bool) -> None:
    """Switch between the text area and the one-line input, as a callback."""
    st.session_state[_LONG] = st.session_state[_ASKED] = is_long


def _text_area() -> None:
    """Draw the text area that contains the session's text."""
    st.session_state[state.AREA_KEY] = state.text()
    st.text_area(
        "Your text",
        key=state.AREA_KEY,
        height=190,
        on_change=_store_area_text,
        help="Press Ctrl+Enter to submit the text. It stays in the memory of this computer: it is "
        "not stored, logged or sent.",
    )


def _store_area_text() -> None:
    """Copy the text area's content to the session, as a callback."""
    state.set_text(str(st.session_state[state.AREA_KEY]))
    st.session_state[state.SEEN_KEY] = state.text()  # so that the area stays open


def show_encoded_words(slot: Any, encoder: Encoder, typed: str, by: str = "") -> None:
    """Draw how many of a text's words the encoder encodes; nothing for a short complete one.

    Nothing is drawn for a short text that is encoded completely.
    """
    n_read, n = words_read(encoder, typed)
    if n_read < n or uses_text_area():
        slot.caption(
            f"{n_read:,} of {n:,} words are encoded{by and f' by {by}'}"
            + ("." if n_read == n else ": the vector contains nothing of the rest.")
        )


def sample_buttons() -> Any:
    """Draw buttons for sample and random sentences and the text area; return their row.

    Returns
    -------
    container
        Their row, for a button of the page's own.
    """
    row = st.container(horizontal=True, gap="xsmall", key="samples")
    with row:
        for sample in cache.samples():
            st.button(
                sample["title"],
                key=f"sample-{sample['id']}",
                icon=f":material/{sample['icon']}:",
                help="An invented example",
                on_click=state.set_text,
                args=(sample["text"],),
            )
        st.menu_button(
            "Random sentence",
            list(_CORPORA),
            key="random-sentence",
            icon=":material/shuffle:",
            help="A random sentence from a corpus that ships with Leakscope",
            on_click=_draw_sentence,
        )
        is_long = uses_text_area()
        st.button(
            "One line" if is_long else "Long text",
            key="long-text",
            icon=":material/short_text:" if is_long else ":material/notes:",
            help="The page answers as you type"
            if is_long
            else "A larger field to type or paste into",
            on_click=_use_area,
            args=(not is_long,),
        )
    return row


def _draw_sentence() -> None:
    """Replace the session's text by a random sentence of the picked corpus, as a callback."""
    with error_boundary():
        name = _CORPORA[state.menu_choice("random-sentence")]
        state.set_text(random.choice(cache.corpus_sentences(name)))


def present_button() -> None:
    """Draw the button that turns the presentation mode on."""
    st.button(
        "Present",
        key="present",
        icon=":material/slideshow:",
        help="Hides the controls and enlarges the text. Arrow keys step through the samples.",
        on_click=state.present,
        args=(True,),
    )


def presenter_buttons() -> None:
    """Draw the buttons that step through the samples during a presentation."""
    texts = [sample["text"] for sample in cache.samples()]
    here = texts.index(state.text()) if state.text() in texts else -1
    with st.container(horizontal=True, horizontal_alignment="center", gap="xsmall"):
        for label, icon, keys, step in (
            ("Previous", "arrow_back", ("Left", "PageUp"), -1),
            ("Next", "arrow_forward", ("Right", "PageDown"), 1),
        ):
            for key in keys:  # a button has one shortcut: clickers get their own
                st.button(
                    label,
                    key=f"present-{label}" if key == keys[0] else f"clicker-{label}",
                    icon=f":material/{icon}:",
                    shortcut=key,
                    help="Steps through the samples",
                    on_click=state.set_text,
                    args=(texts[(here + step) % len(texts)],),
                )


def leave_button() -> None:
    """Draw the button that turns the presentation mode off."""
    st.button(
        "Leave presentation",
        key="present-leave",
        icon=":material/close_fullscreen:",
        shortcut="Esc",
        help="Shows the controls again",
        on_click=state.present,
        args=(False,),
    )
