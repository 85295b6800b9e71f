"""What an attacker needed: access, queries, examples, time."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.attacks.inversion import INVERSION_ATTACKS
from core.attacks.inversion.reading import Reading
from dashboard import cache, markup
from dashboard.inversion.answers import ENCODER

__all__ = ["cost_in_words", "needs"]


def needs(reading: Reading) -> None:
    """Draw what the attacker had to have: access, queries, training, time."""
    training = reading.training
    n_queries = reading.recovery.n_queries
    rows = {
        "Needs": INVERSION_ATTACKS[reading.attack].access.needs,
        "Training pairs": _pairs(reading),
        "Queries": f"{n_queries:,} for this text" if n_queries else "none for this text",
        "Time": f"{_duration(reading.seconds)} "
        + ("until it was stopped" if reading.is_unfinished else "to answer"),
    }
    if training.get("seconds"):
        after = _beside(training, " after")
        rows["Time"] += (
            f", {_duration(training['seconds'])} to train once{after}{_machine(training)}"
        )
    st.html(markup.label("What the attacker needed") + markup.facts(rows))


def _pairs(reading: Reading) -> str:
    """Return on how many pairs of text and vector an attack was trained, of its base the first."""
    training = reading.training
    if not training.get("n_texts"):
        return "none"
    n_texts = f"{training['n_texts']:,}"
    if n_first := _taught_first(training):
        base = INVERSION_ATTACKS[training["built_on"]].title.lower()
        return f"{n_first:,} for the {base}, {_own_lesson(reading.attack, n_texts)}"
    return f"{n_texts}{_beside(training)}"


def _own_lesson(attack: str, n_texts: str) -> str:
    """Return what an attack learns beside the one that it is built on."""
    if INVERSION_ATTACKS[attack].writes_sentences:
        return f"and {n_texts} sentences without vectors for a language model"
    return f"{n_texts} to correct its answers"


def _taught_first(training: dict[str, Any]) -> int | None:
    """Return how many sentences taught the shipped attack that an attack corrects.

    None where it corrects none, or one that was trained on other texts.
    """
    base = cache.shipped_records(ENCODER).get(str(training.get("built_on")), {})
    is_same = base.get("corpus") is not None and base["corpus"] == training.get("corpus")
    return int(base["n_texts"]) if is_same else None


def _beside(training: dict[str, Any], said: str = ", beside those of") -> str:
    """Return the attack that an attack is built on, as its own cost comes on top of that one's."""
    base = INVERSION_ATTACKS.get(str(training.get("built_on")))
    return f"{said} the {base.title.lower()}" if base is not None else ""


def _machine(training: dict[str, Any]) -> str:
    hardware = training.get("hardware")
    if not isinstance(hardware, dict):
        return f" ({hardware})" if hardware else ""
    if str(hardware.get("device", "")).startswith("cpu"):
        return f" ({hardware.get('n_cpus', '?')} processor cores)"
    return f" ({hardware.get('chip', hardware.get('device'))})"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cost_in_words(reading: Reading) -> str:
    """Return how long the answer took, and on how many examples it was trained."""
    n_texts = reading.training.get("n_texts")
    trained = "not trained"
    if n_texts and (n_first := _taught_first(reading.training)):
        trained = f"taught by {n_first:,} example sentences, "
        if INVERSION_ATTACKS[reading.attack].writes_sentences:
            trained += f"its language model by {n_texts:,}"
        else:
            trained += f"and to correct itself by {n_texts:,}"
    elif n_texts:
        trained = f"trained once on {n_texts:,} example sentences{_beside(reading.training)}"
    did = "stopped after" if reading.is_unfinished else "answered in"
    return f"{trained}, {did} {_duration(reading.seconds)}"
