"""What one visitor has chosen and seen: with `defence_state`, the only user of the session.

Results stay with the session that asked for them, in a bounded number, and end with it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core.attacks.inversion.reading import Reading
from dashboard import cache
from dashboard.address import Parameter
from dashboard.inversion.request import Request

__all__ = [
    "ATTACKS_KEY",
    "STOP_WORDS_KEY",
    "TEXT_KEY",
    "adopt_link",
    "chosen_attacks",
    "counts_stop_words",
    "drop_stale_link",
    "forget_widgets",
    "is_presenting",
    "job_of",
    "jobs_of_other_texts",
    "picked",
    "present",
    "reading_of",
    "remember_job",
    "remember_reading",
    "restore",
    "set_text",
    "settings_of_attack",
    "text",
    "text_parameter",
    "use_settings",
]

TEXT_KEY = "sentence"
ATTACKS_KEY = "chosen_attacks"
STOP_WORDS_KEY = "counts_stop_words"
_MOST_READINGS = 64


def adopt_link(default_text: str, default_attacks: Sequence[str]) -> tuple[str, ...]:
    """Take over text and attacks from the address, once per address; return unknown names.

    `?text=…&attack=…&attack=…` (or `attack=a,b`), `&stop_words=1`, `&present=1`.
    """
    from core.attacks.inversion import INVERSION_ATTACKS

    st.session_state.setdefault(TEXT_KEY, default_text)
    st.session_state.setdefault(ATTACKS_KEY, list(default_attacks))
    st.session_state.setdefault(STOP_WORDS_KEY, False)
    params = st.query_params
    link = (params.get("text"), tuple(params.get_all("attack")))
    if link == st.session_state.get("_adopted_link", (None, ())):
        return st.session_state.get("_unknown_attacks", ())
    st.session_state["_adopted_link"] = link
    if link[0] is not None:
        st.session_state[TEXT_KEY] = link[0]
    named = [name.strip() for value in link[1] for name in value.split(",") if name.strip()]
    known = list(
        dict.fromkeys(name for name in named if name in INVERSION_ATTACKS and name != "prior")
    )
    if known:
        st.session_state[ATTACKS_KEY] = known
    unknown = tuple(name for name in named if name not in INVERSION_ATTACKS)
    st.session_state["_unknown_attacks"] = unknown
    if "stop_words" in params:
        st.session_state[STOP_WORDS_KEY] = params["stop_words"] == "1"
    return unknown


def drop_stale_link() -> None:
    """Take text and attacks out of the address as soon as it no longer tells the truth."""
    linked_text, linked_attacks = st.session_state.get("_adopted_link", (None, ()))
    if linked_text is None and not linked_attacks:
        return
    named = [n.strip() for value in linked_attacks for n in value.split(",")]
    is_same = linked_text in (None, text()) and (not named or set(chosen_attacks()) <= set(named))
    if not is_same:
        for name in ("text", "attack", "stop_words", "present"):
            st.query_params.pop(name, None)
        st.session_state["_adopted_link"] = (None, ())
        st.session_state["_unknown_attacks"] = ()


def text_parameter() -> Parameter:
    """Return the sentence as a parameter of an address; the first sample unless it says more."""
    return Parameter(name="text", key=TEXT_KEY, default=cache.samples()[0]["text"])


def text() -> str:
    """Return the sentence under attack."""
    return str(st.session_state.get(TEXT_KEY, ""))


def set_text(value: str) -> None:
    """Replace the sentence, from a callback or before its control is drawn."""
    st.session_state[TEXT_KEY] = value


def chosen_attacks() -> list[str]:
    """Return the chosen attacks in the registry's order."""
    from core.attacks.inversion import INVERSION_ATTACKS

    chosen = st.session_state.get(ATTACKS_KEY) or []
    return [name for name in INVERSION_ATTACKS if name in chosen]


def counts_stop_words() -> bool:
    """Return whether stop words count as words to find."""
    return bool(st.session_state.get(STOP_WORDS_KEY, False))


def is_presenting() -> bool:
    """Return whether the controls are hidden and the text is large; `?present=1` starts so."""
    if "_presenting" not in st.session_state:
        st.session_state["_presenting"] = st.query_params.get("present") == "1"
    return bool(st.session_state.get("_presenting", False))


def present(value: bool) -> None:
    """Enter or leave the presentation."""
    st.session_state["_presenting"] = value


def settings_of_attack(name: str) -> dict[str, Any]:
    """Return the settings of an attack that the visitor changed."""
    return dict(st.session_state.setdefault("_settings", {}).get(name, {}))


def use_settings(name: str, settings: dict[str, Any]) -> None:
    """Replace the changed settings of an attack."""
    st.session_state.setdefault("_settings", {})[name] = settings


def reading_of(request: Request) -> Reading | None:
    """Return a reading that this session has seen."""
    return _readings().get(request)


def remember_reading(request: Request, reading: Reading) -> Reading:
    """Keep a reading for this session, the oldest giving way."""
    readings = _readings()
    readings[request] = reading
    while len(readings) > _MOST_READINGS:
        readings.popitem(last=False)
    return reading


def _readings() -> OrderedDict[Request, Reading]:
    found: OrderedDict[Request, Reading] = st.session_state.setdefault("_readings", OrderedDict())
    return found


def remember_job(request: Request, job_id: str | None) -> None:
    """Note the job that works on a request, here and in the address; None forgets it."""
    jobs = _jobs()
    if job_id is None:
        jobs.pop(request, None)
    else:
        jobs[request] = job_id
    st.query_params["job"] = list(jobs.values())
    if not jobs:
        st.query_params.pop("job", None)


def restore(request: Request, job_id: str) -> None:
    """Show again what a running job was asked for: the page was reloaded meanwhile."""
    st.session_state[TEXT_KEY] = request.text
    st.session_state[STOP_WORDS_KEY] = request.counts_stop_words
    chosen = st.session_state.get(ATTACKS_KEY) or []
    st.session_state[ATTACKS_KEY] = list(dict.fromkeys([*chosen, request.spec.name]))
    settings = dict(request.spec.settings)
    if request.counts_stop_words:
        settings.pop("keep_stop_words", None)
    use_settings(request.spec.name, settings)
    _jobs()[request] = job_id


def job_of(request: Request) -> str | None:
    """Return the id of the job that works on a request."""
    return _jobs().get(request)


def jobs_of_other_texts(text: str) -> list[tuple[Request, str]]:
    """Return the jobs of sentences that are no longer shown."""
    return [(request, job) for request, job in _jobs().items() if request.text != text]


def _jobs() -> dict[Request, str]:
    found: dict[Request, str] = st.session_state.setdefault("_jobs", {})
    return found


def picked(key: str) -> Any:
    """Return what was picked from a menu, within its callback."""
    return st.session_state[key]


def forget_widgets(prefix: str) -> None:
    """Let controls whose key starts so take their values anew."""
    for key in [k for k in st.session_state if str(k).startswith(prefix)]:
        del st.session_state[key]
