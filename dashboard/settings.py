"""Settings of any attack, drawn from its declaration: a spec in, controls out, a spec back."""

from __future__ import annotations

import typing
from dataclasses import Field
from typing import Any

import streamlit as st

from core.attacks import ATTACKS
from core.specs import settings_of
from dashboard import state
from dashboard.answers import settings_for, tuned_settings
from dashboard.calm import plain

__all__ = ["adjustable_settings", "settings_of_chosen"]


def settings_of_chosen() -> None:
    """Draw the settings of the chosen attacks that have any."""
    names = [name for name in state.chosen_attacks() if adjustable_settings(name)]
    if not names:
        st.caption("The chosen attacks are trained; their settings belong to the training.")
    for name in names:
        _attack_settings(name)


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


def _attack_settings(name: str) -> None:
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
