"""The controls that several pages share: the sentence, its samples, and the presentation."""

from __future__ import annotations

import random
from typing import Any

import streamlit as st

from core.encoders.white_box import words_read
from core.protocols import Encoder
from dashboard import cache, state
from dashboard.calm import calm

__all__ = [
    "has_area",
    "leave_button",
    "present_button",
    "presenter_buttons",
    "sample_buttons",
    "sentence_input",
    "words_encoded",
]

_LONG, _ASKED = "_has_area", "_asked_for_area"
_LINE = 200
"""Characters that a line shows well."""
_PASTED = 50
"""Characters that nobody types between two looks at a line."""

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def sentence_input(
    placeholder: str = "Type a sentence; the fast attacks answer as you type",
) -> None:
    """Draw the line that one types into; it answers while one types.

    A long text, from a link, a collection or the clipboard, has an area instead, and so has who
    asks for it.
    """
    if has_area():
        _text_area()
        return
    st.text_input(
        "Your sentence",
        key=state.TEXT_KEY,
        live="300ms",
        autocomplete="off",
        persist_state="session",
        placeholder=placeholder,
        help="It stays in the memory of this computer: it is not stored, logged or sent anywhere. "
        "The attacks see its embedding alone; the text only serves to mark what they got right.",
    )


def has_area() -> bool:
    """Return whether the text has an area: as asked for, or as long as it was when it came.

    It comes when it is set or pasted. Who types goes on where they are.
    """
    here, seen = state.text(), st.session_state.get(state.SEEN_KEY)
    if seen is None or len(here) - len(seen) > _PASTED:
        st.session_state[_LONG] = len(here) > _LINE or bool(st.session_state.get(_ASKED))
    st.session_state[state.SEEN_KEY] = here
    return bool(st.session_state[_LONG])


def _use_area(is_long: bool) -> None:
    st.session_state[_LONG] = st.session_state[_ASKED] = is_long


def _text_area() -> None:
    st.session_state[state.AREA_KEY] = state.text()
    st.text_area(
        "Your text",
        key=state.AREA_KEY,
        height=190,
        on_change=_take_area,
        help="Press Ctrl and Enter to have it read. It stays in the memory of this computer: it is "
        "not stored, logged or sent anywhere.",
    )


def _take_area() -> None:
    state.set_text(str(st.session_state[state.AREA_KEY]))
    st.session_state[state.SEEN_KEY] = state.text()  # it stays in the area


def words_encoded(slot: Any, encoder: Encoder, typed: str, by: str = "") -> None:
    """Say how many words of a long text the encoder reads at all; by which, where there are many.

    Nothing is said of a line that is read to its end.
    """
    n_read, n = words_read(encoder, typed)
    if n_read < n or has_area():
        slot.caption(
            f"{n_read:,} of {n:,} words are encoded{by and f' by {by}'}"
            + ("." if n_read == n else ": what comes after them is not in the vector.")
        )


def sample_buttons() -> None:
    """Draw a button for each sample sentence, for a random one, and for more room to type."""
    with st.container(horizontal=True, gap="xsmall"):
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
            help="A sentence drawn from a collection that comes with Leakscope",
            on_click=_draw_sentence,
        )
        is_long = has_area()
        st.button(
            "One line" if is_long else "Long text",
            key="long-text",
            icon=":material/short_text:" if is_long else ":material/notes:",
            help="A line answers as you type" if is_long else "More room to type or paste into",
            on_click=_use_area,
            args=(not is_long,),
        )


def _draw_sentence() -> None:
    with calm():
        name = _CORPORA[state.picked("random-sentence")]
        state.set_text(random.choice(cache.corpus_sentences(name)))


def present_button() -> None:
    """Draw the button that hides the controls and enlarges the text."""
    st.button(
        "Present",
        key="present",
        icon=":material/slideshow:",
        help="Hides the controls and enlarges the text. Arrow keys step through the samples.",
        on_click=state.present,
        args=(True,),
    )


def presenter_buttons() -> None:
    """Draw what steps through the samples; the way out stands on every page."""
    texts = [sample["text"] for sample in cache.samples()]
    here = texts.index(state.text()) if state.text() in texts else -1
    with st.container(horizontal=True, horizontal_alignment="center", gap="xsmall"):
        for label, icon, keys, step in (
            ("Previous", "arrow_back", ("Left", "PageUp"), -1),
            ("Next", "arrow_forward", ("Right", "PageDown"), 1),
        ):
            for key in keys:  # a button has one key; that of clickers has a button of its own
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
    """Draw the way out of the presentation."""
    st.button(
        "Leave presentation",
        key="present-leave",
        icon=":material/close_fullscreen:",
        shortcut="Esc",
        help="Shows the controls again",
        on_click=state.present,
        args=(False,),
    )
