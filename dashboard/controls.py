"""The controls that several pages share: the sentence, its samples, and the presentation."""

from __future__ import annotations

import random

import streamlit as st

from dashboard import cache, state
from dashboard.calm import calm

__all__ = [
    "leave_button",
    "present_button",
    "presenter_buttons",
    "sample_buttons",
    "sentence_input",
]

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def sentence_input(
    placeholder: str = "Type a sentence; the fast attacks answer as you type",
) -> None:
    """Draw the line that one types into; it answers while one types."""
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


def sample_buttons() -> None:
    """Draw a button for each sample sentence, and one for a random sentence of a corpus."""
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
