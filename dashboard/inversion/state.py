"""The visitor's choices and cached readings on the inversion page.

Readings are cached in the session that requested them, in a bounded number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.reading import Reading
from leakscope.core.findings.prose import plain
from leakscope.core.specs import AttackSpec
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import set_text, text_parameter


@dataclass(frozen=True, kw_only=True)
class Request:
    """The text, the attack and the options that identify a reading."""

    text: str
    spec: AttackSpec
    counts_stop_words: bool = False


ATTACKS_KEY = "chosen_attacks"
STOP_WORDS_KEY = "counts_stop_words"
_FIRST = ("probe_mlc", "search")
_READINGS: SessionCache[Request, Reading] = SessionCache("_readings", 64)
reading_of = _READINGS.get
remember_reading = _READINGS.add


def address() -> Address:
    """Build the inversion page's address parameters.

    `?text=…&attack=…&attack=…` (or `attack=a,b`), `&stop_words=1`; `&present=1` starts with the
    controls hidden.
    """
    attacks = Parameter(
        name="attack",
        key=ATTACKS_KEY,
        default=list(_FIRST),
        options=selectable_attacks(),
        is_many=True,
        hint=plain(f"The attacks are {', '.join(selectable_attacks())}."),
    )
    stop_words = Parameter(
        name="stop_words",
        key=STOP_WORDS_KEY,
        default=False,
        read=lambda text: text == "1",
        write=lambda is_on: "1" if is_on else None,
    )
    return Address("inversion", (text_parameter(), attacks, stop_words))


def selectable_attacks() -> list[str]:
    """Return the names of attacks to select from: all except the prior-only baseline."""
    return [name for name, entry in INVERSION_ATTACKS.items() if not entry.is_baseline]


def chosen_attacks() -> list[str]:
    """Return the names of the selected attacks, in the registry's order."""
    chosen = st.session_state.get(ATTACKS_KEY) or []
    return [name for name in INVERSION_ATTACKS if name in chosen]


def counts_stop_words() -> bool:
    """Return whether stop words count as words to recover."""
    return bool(st.session_state.get(STOP_WORDS_KEY, False))


def settings_of_attack(name: str) -> dict[str, Any]:
    """Return the settings of a named attack that the visitor changed, by name."""
    return dict(st.session_state.setdefault("_settings", {}).get(name, {}))


def use_settings(name: str, settings: dict[str, Any]) -> None:
    """Store the changed settings of a named attack in the session."""
    st.session_state.setdefault("_settings", {})[name] = settings


def restore(request: Request) -> None:
    """Set the controls to the request of a running attack job, after a reload."""
    set_text(request.text)
    st.session_state[STOP_WORDS_KEY] = request.counts_stop_words
    chosen = st.session_state.get(ATTACKS_KEY) or []
    st.session_state[ATTACKS_KEY] = list(dict.fromkeys([*chosen, request.spec.name]))
    settings = dict(request.spec.settings)
    if request.counts_stop_words:
        settings.pop("keep_stop_words", None)
    use_settings(request.spec.name, settings)
