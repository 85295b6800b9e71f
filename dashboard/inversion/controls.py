"""The controls of the inversion page: attacks, stop words, and the settings of each attack."""

from __future__ import annotations

import typing
from dataclasses import Field
from typing import Any

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.findings.prose import plain
from leakscope.core.specs import inference_settings
from leakscope.dashboard import cache
from leakscope.dashboard.inversion import state
from leakscope.dashboard.inversion.answers import ENCODER, base_settings
from leakscope.dashboard.ui.state import forget_widgets


def attack_picker() -> None:
    """Draw the selector of attacks in a popover that shows how many are selected."""
    n = len(state.chosen_attacks())
    with st.popover(
        f"{n or 'No'} attack{'' if n == 1 else 's'} chosen",
        icon=":material/undo:",
        help="How the attacker recovers words from the vector",
        key="attacks",
    ):
        st.pills(
            "Attacks",
            state.selectable_attacks(),
            selection_mode="multi",
            key=state.ATTACKS_KEY,
            persist_state="session",
            wrap=True,
            format_func=_attack_label,
            help="Each attack gets a card below. :material/bolt: answers as you type, "
            ":material/hourglass_top: runs when you start it.",
        )


def _attack_label(name: str) -> str:
    """Return an attack's title with an icon for how fast it answers."""
    answers_at_once = INVERSION_ATTACKS[name].is_live and cache.opens_fast(name, ENCODER)
    icon = "bolt" if answers_at_once else "hourglass_top"
    return f":material/{icon}: {INVERSION_ATTACKS[name].title}"


def stop_words_toggle() -> None:
    """Draw the switch that makes stop words count."""
    st.toggle(
        "Count stop words",
        key=state.STOP_WORDS_KEY,
        persist_state="session",
        help="Words such as *the*, *of* and *and*. They say little, so they are not scored. Most "
        "attacks were trained without them and miss them if they count.",
    )


def chosen_attack_settings() -> None:
    """Draw the inference settings of each selected attack."""
    names = state.chosen_attacks()
    if not names:
        st.caption("Choose an attack first.")
    for name in names:
        _attack_settings(name)


def adjustable_settings(name: str) -> dict[str, Field[Any]]:
    """Return the declared settings of a named attack that need no new training, by name."""
    return inference_settings(INVERSION_ATTACKS[name].kind)


def _attack_settings(name: str) -> None:
    """Draw a named attack's settings with reset buttons, and store the changed values."""
    declared = adjustable_settings(name)
    base = base_settings(name)
    papers = {key: field.default for key, field in declared.items() if field.default != base[key]}
    hints = typing.get_type_hints(INVERSION_ATTACKS[name].kind)
    values = base | state.settings_of_attack(name)
    st.markdown(f"**{INVERSION_ATTACKS[name].title}**")
    with st.container(horizontal=True, gap="xsmall"):
        st.button(
            "Reset",
            key=f"reset-{name}",
            icon=":material/restart_alt:",
            help="Restores the settings that work best for this encoder",
            on_click=_reset_settings,
            args=(name, {}),
        )
        if papers:
            st.button(
                "The paper's settings",
                key=f"paper-{name}",
                icon=":material/history_edu:",
                help="The defaults of the command line: the paper's, where the paper gives them",
                on_click=_reset_settings,
                args=(name, papers),
            )
    chosen = {
        key: _setting_control(f"setting-{name}-{key}", key, field, hints[key], values[key])
        for key, field in declared.items()
    }
    state.use_settings(name, {key: v for key, v in chosen.items() if v != base[key]})


def _reset_settings(name: str, settings: dict[str, Any]) -> None:
    """Store an attack's given settings and reset their controls, as a callback."""
    state.use_settings(name, settings)
    forget_widgets(f"setting-{name}-")


def _setting_control(key: str, label: str, spec: Field[Any], hint: Any, value: Any) -> Any:
    """Draw the control of one setting, by its type, and return the selected value."""
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
    kind = int if hint is int else float
    low, high = (None if bound is None else kind(bound) for bound in (meta["low"], meta["high"]))
    step, form = (1, None) if kind is int else (None, "%g")
    return st.number_input(shown, low, high, kind(value), step=step, format=form, **about)
