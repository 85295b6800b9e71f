"""What one visitor has chosen and seen on the page of inversion.

Results stay with the session that asked for them, in a bounded number, and end with it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import Reading
from dashboard.address import Address, Parameter
from dashboard.calm import plain
from dashboard.inversion.request import Request
from dashboard.kept import Kept
from dashboard.state import set_text, text_parameter

__all__ = [
    "ATTACKS_KEY",
    "STOP_WORDS_KEY",
    "address",
    "chosen_attacks",
    "counts_stop_words",
    "on_offer",
    "reading_of",
    "remember_reading",
    "restore",
    "settings_of_attack",
    "use_settings",
]

ATTACKS_KEY = "chosen_attacks"
STOP_WORDS_KEY = "counts_stop_words"
_FIRST = ("probe_mlc", "search")
_SEEN: Kept[Request, Reading] = Kept("_readings", 64)
reading_of = _SEEN.get
remember_reading = _SEEN.add


def address() -> Address:
    """Return what an address may ask for.

    `?text=…&attack=…&attack=…` (or `attack=a,b`), `&stop_words=1`; `&present=1` starts with the
    controls hidden.
    """
    attacks = Parameter(
        name="attack",
        key=ATTACKS_KEY,
        default=list(_FIRST),
        options=on_offer(),
        is_many=True,
        hint=plain(f"There are {', '.join(on_offer())}."),
    )
    stop_words = Parameter(
        name="stop_words",
        key=STOP_WORDS_KEY,
        default=False,
        read=lambda text: text == "1",
        write=lambda is_on: "1" if is_on else None,
    )
    return Address("inversion", (text_parameter(), attacks, stop_words))


def on_offer() -> list[str]:
    """Return the attacks that can be chosen: all that look at the vector."""
    return [name for name, entry in INVERSION_ATTACKS.items() if not entry.is_baseline]


def chosen_attacks() -> list[str]:
    """Return the chosen attacks in the registry's order."""
    chosen = st.session_state.get(ATTACKS_KEY) or []
    return [name for name in INVERSION_ATTACKS if name in chosen]


def counts_stop_words() -> bool:
    """Return whether stop words count as words to find."""
    return bool(st.session_state.get(STOP_WORDS_KEY, False))


def settings_of_attack(name: str) -> dict[str, Any]:
    """Return the settings of an attack that the visitor changed."""
    return dict(st.session_state.setdefault("_settings", {}).get(name, {}))


def use_settings(name: str, settings: dict[str, Any]) -> None:
    """Replace the changed settings of an attack."""
    st.session_state.setdefault("_settings", {})[name] = settings


def restore(request: Request) -> None:
    """Show again what a running job was asked for: the page was reloaded meanwhile."""
    set_text(request.text)
    st.session_state[STOP_WORDS_KEY] = request.counts_stop_words
    chosen = st.session_state.get(ATTACKS_KEY) or []
    st.session_state[ATTACKS_KEY] = list(dict.fromkeys([*chosen, request.spec.name]))
    settings = dict(request.spec.settings)
    if request.counts_stop_words:
        settings.pop("keep_stop_words", None)
    use_settings(request.spec.name, settings)
