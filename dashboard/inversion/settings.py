"""Settings of any attack, drawn from its declaration: a spec in, controls out, a spec back."""

from __future__ import annotations

import typing
from dataclasses import Field
from typing import Any

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.specs import settings_at_answering
from dashboard.calm import plain
from dashboard.inversion import state
from dashboard.inversion.answers import base_settings
from dashboard.state import forget_widgets

__all__ = ["adjustable_settings", "settings_of_chosen"]


def settings_of_chosen() -> None:
    """Draw the settings of the chosen attacks; those of training are the command line's."""
    names = state.chosen_attacks()
    if not names:
        st.caption("Choose an attack first.")
    for name in names:
        _attack_settings(name)


def adjustable_settings(name: str) -> dict[str, Field[Any]]:
    """Return the settings that act when the attack answers, so that it need not be trained anew."""
    return settings_at_answering(INVERSION_ATTACKS[name].kind)


def _attack_settings(name: str) -> None:
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
            help="Back to the settings that serve this encoder best",
            on_click=_use,
            args=(name, {}),
        )
        if papers:
            st.button(
                "The paper's settings",
                key=f"paper-{name}",
                icon=":material/history_edu:",
                help="The defaults of the command line, which are the paper's where it gives them",
                on_click=_use,
                args=(name, papers),
            )
    chosen = {
        key: _draw(f"setting-{name}-{key}", key, field, hints[key], values[key])
        for key, field in declared.items()
    }
    state.use_settings(name, {key: v for key, v in chosen.items() if v != base[key]})


def _use(name: str, settings: dict[str, Any]) -> None:
    state.use_settings(name, settings)
    forget_widgets(f"setting-{name}-")


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
    kind = int if hint is int else float
    low, high = (None if bound is None else kind(bound) for bound in (meta["low"], meta["high"]))
    step, form = (1, None) if kind is int else (None, "%g")
    return st.number_input(shown, low, high, kind(value), step=step, format=form, **about)
