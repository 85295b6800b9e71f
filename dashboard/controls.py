"""The controls of the inversion page, and settings of any attack drawn from its declaration."""

from __future__ import annotations

import random
import typing
from dataclasses import Field
from typing import Any

import streamlit as st

from core.attacks import ATTACKS
from core.specs import settings_of
from dashboard import cache, state
from dashboard.answers import settings_for, tuned_settings
from dashboard.calm import calm, plain

__all__ = [
    "attack_picker",
    "attack_settings",
    "present_button",
    "sample_buttons",
    "sentence_input",
    "stop_words_toggle",
]

_CORPORA = {"News (Lee)": "lee", "Wikipedia extract": "wikipedia"}


def sentence_input() -> None:
    """Draw the line that one types into; it answers while one types."""
    st.text_input(
        "Your sentence",
        key=state.TEXT_KEY,
        live="300ms",
        autocomplete="off",
        persist_state="session",
        placeholder="Type a sentence; the fast attacks answer as you type",
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
        [name for name in ATTACKS if name != "prior"],
        selection_mode="multi",
        key=state.ATTACKS_KEY,
        persist_state="session",
        wrap=True,
        format_func=_pill,
        help="How the attacker turns the vector back into words. Each choice gets a card below. "
        ":material/bolt: answers as you type, :material/hourglass_top: runs when you ask.",
    )


def _pill(name: str) -> str:
    icon = "bolt" if ATTACKS[name].is_live else "hourglass_top"
    return f":material/{icon}: {ATTACKS[name].title}"


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


def adjustable_settings(name: str) -> dict[str, Field[Any]]:
    """Return the settings that can change without training the attack anew."""
    kind = ATTACKS[name].kind
    is_untrained = hasattr(kind, "open")
    tuned = tuned_settings(name)
    return {
        key: declared
        for key, declared in settings_of(kind).items()
        if key != "keep_stop_words" and (is_untrained or key in tuned)
    }


def attack_settings(name: str) -> None:
    """Draw the adjustable settings of an attack and keep what differs from its defaults."""
    declared = adjustable_settings(name)
    if not declared:
        return
    st.markdown(f"**{ATTACKS[name].title}**")
    hints = typing.get_type_hints(ATTACKS[name].kind)
    changed = settings_for(name)
    with st.container(horizontal=True, gap="xsmall"):
        st.button(
            "The paper's settings",
            key=f"paper-{name}",
            help="Back to the defaults, which are the paper's where it gives them",
            on_click=_reset,
            args=(name, {}),
        )
        if tuned := tuned_settings(name):
            st.button(
                "Tuned for this encoder",
                key=f"tuned-{name}",
                help="Settings found on other texts to serve this encoder better",
                on_click=_reset,
                args=(name, tuned),
            )
    values = {
        key: _draw(f"setting-{name}-{key}", key, spec, hints[key], changed.get(key, spec.default))
        for key, spec in declared.items()
    }
    state.use_settings(name, {k: v for k, v in values.items() if v != declared[k].default})


def _reset(name: str, settings: dict[str, Any]) -> None:
    state.use_settings(name, settings)
    state.forget_widgets(f"setting-{name}-")


def _draw(key: str, label: str, spec: Field[Any], hint: Any, value: Any) -> Any:
    meta = spec.metadata
    source = f" (default: {meta['paper']})" if meta["paper"] else ""
    shown = plain(label.replace("_", " ").capitalize())
    about: dict[str, Any] = {"key": key, "help": plain(meta["help"] + source)}
    if meta["choices"] is not None:
        return st.selectbox(shown, meta["choices"], meta["choices"].index(value), **about)
    if hint is bool:
        return st.toggle(shown, value, **about)
    if hint is str:
        return st.text_input(shown, value, **about)
    whole = hint is int
    low, high = (None if bound is None else hint(bound) for bound in (meta["low"], meta["high"])) \
        if hint in (int, float) else (meta["low"], meta["high"])  # fmt: skip
    return st.number_input(
        shown, low, high, value, step=1 if whole else None, format=None if whole else "%g", **about
    )


def settings_of_chosen() -> None:
    """Draw the settings of the chosen attacks that have any."""
    names = [name for name in state.chosen_attacks() if adjustable_settings(name)]
    if not names:
        st.caption("The chosen attacks are trained; their settings belong to the training.")
    for name in names:
        attack_settings(name)


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
