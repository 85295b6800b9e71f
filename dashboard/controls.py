"""The controls of the inversion page."""

from __future__ import annotations

import random

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from dashboard import cache, state
from dashboard.calm import calm
from dashboard.inversion.answers import ENCODER

__all__ = [
    "attack_picker",
    "present_button",
    "presenter_buttons",
    "sample_buttons",
    "sentence_input",
    "stop_words_toggle",
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


def attack_picker() -> None:
    """Draw the choice of attacks, side by side."""
    st.pills(
        "Attacks",
        [name for name in INVERSION_ATTACKS if name != "prior"],
        selection_mode="multi",
        key=state.ATTACKS_KEY,
        persist_state="session",
        wrap=True,
        format_func=_pill,
        help="How the attacker turns the vector back into words. Each choice gets a card below. "
        ":material/bolt: answers as you type, :material/hourglass_top: runs when you ask.",
    )


def _pill(name: str) -> str:
    answers_at_once = INVERSION_ATTACKS[name].is_live and cache.opens_at_once(name, ENCODER)
    icon = "bolt" if answers_at_once else "hourglass_top"
    return f":material/{icon}: {INVERSION_ATTACKS[name].title}"


def stop_words_toggle() -> None:
    """Draw the switch that makes stop words count."""
    st.toggle(
        "Count stop words",
        key=state.STOP_WORDS_KEY,
        persist_state="session",
        help="Words such as *the*, *of* and *and*. They say little, so they are left out of the "
        "scores; most attacks were trained without them and miss them when they count.",
    )


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
    """Draw what a presenter needs: one sample back, one on, and the way out."""
    texts = [sample["text"] for sample in cache.samples()]
    here = texts.index(state.text()) if state.text() in texts else -1
    with st.container(horizontal=True, horizontal_alignment="center", gap="xsmall"):
        for label, icon, key, step in (
            ("Previous", "arrow_back", "Left", -1),
            ("Next", "arrow_forward", "Right", 1),
        ):
            st.button(
                label,
                key=f"present-{label}",
                icon=f":material/{icon}:",
                shortcut=key,
                help="Steps through the samples",
                on_click=state.set_text,
                args=(texts[(here + step) % len(texts)],),
            )
        st.button(
            "Leave presentation",
            key="present-leave",
            icon=":material/close_fullscreen:",
            shortcut="Esc",
            help="Shows the controls again",
            on_click=state.present,
            args=(False,),
        )
