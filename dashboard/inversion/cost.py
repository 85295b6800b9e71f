"""The cost of an attack: access, queries, training texts and time."""

from __future__ import annotations

from typing import Any

import streamlit as st

from leakscope.core.attacks.inversion import INVERSION_ATTACKS
from leakscope.core.attacks.inversion.reading import Reading
from leakscope.dashboard import cache
from leakscope.dashboard.inversion.answers import ENCODER
from leakscope.dashboard.ui import markup


def show_cost(reading: Reading) -> None:
    """Draw what an attack needed for its reading: access, training pairs, queries and time."""
    training = reading.training
    n_queries = reading.recovery.n_queries
    rows = {
        "Needs": INVERSION_ATTACKS[reading.attack].access.needs,
        "Training pairs": _describe_training_pairs(reading),
        "Queries": f"{n_queries:,} for this text" if n_queries else "none for this text",
        "Time": f"{_format_duration(reading.seconds)} "
        + ("until it was stopped" if reading.is_unfinished else "to answer"),
    }
    if training.get("seconds"):
        after = _base_clause(training, " after")
        rows["Time"] += (
            f", {_format_duration(training['seconds'])} to train "
            f"once{after}{_describe_hardware(training)}"
        )
    with st.expander("What the attacker needed", icon=":material/construction:"):
        st.html(markup.description_list(rows))


def _describe_training_pairs(reading: Reading) -> str:
    """Describe how many (text, vector) pairs an attack and its base were trained on."""
    training = reading.training
    if not training.get("n_texts"):
        return "none"
    n_texts = f"{training['n_texts']:,}"
    if n_first := _base_pairs(training):
        base = INVERSION_ATTACKS[training["built_on"]].title.lower()
        return f"{n_first:,} for the {base}, {_describe_own_training(reading.attack, n_texts)}"
    return f"{n_texts}{_base_clause(training)}"


def _describe_own_training(attack: str, n_texts: str) -> str:
    """Describe what an attack was trained on beyond its base's texts, as a clause."""
    if INVERSION_ATTACKS[attack].writes_sentences:
        return f"and {n_texts} sentences without vectors for its language model"
    return f"{n_texts} to correct its first answers"


def _base_pairs(training: dict[str, Any]) -> int | None:
    """Return the number of training pairs of the base attack; None without a base.

    None also if the base was trained on other texts.
    """
    base = cache.shipped_records(ENCODER).get(str(training.get("built_on")), {})
    is_same = base.get("corpus") is not None and base["corpus"] == training.get("corpus")
    return int(base["n_texts"]) if is_same else None


def _base_clause(training: dict[str, Any], lead: str = ", in addition to those of") -> str:
    """Return a clause that names the base attack; "" if there is none."""
    base = INVERSION_ATTACKS.get(str(training.get("built_on")))
    return f"{lead} the {base.title.lower()}" if base is not None else ""


def _describe_hardware(training: dict[str, Any]) -> str:
    """Describe the hardware of a training record in brackets; "" if not recorded."""
    hardware = training.get("hardware")
    if not isinstance(hardware, dict):
        return f" ({hardware})" if hardware else ""
    if str(hardware.get("device", "")).startswith("cpu"):
        return f" ({hardware.get('n_cpus', '?')} processor cores)"
    return f" ({hardware.get('chip', hardware.get('device'))})"


def _format_duration(seconds: float) -> str:
    """Format a number of seconds as ms, s, min or h."""
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cost_in_words(reading: Reading) -> str:
    """Describe the attack's training texts and its answering time, for a table cell."""
    return f"{_training_in_words(reading)}; {_time_in_words(reading)}"


def cost_in_sentences(reading: Reading) -> str:
    """Describe the attack's training texts and its answering time, in two sentences."""
    attack = f"The attack ({INVERSION_ATTACKS[reading.attack].title.lower()})"
    return (
        f"{attack} was {_training_in_words(reading)}. It {_time_in_words(reading)} on this "
        "computer."
    )


def _training_in_words(reading: Reading) -> str:
    """Describe the training texts of a reading's attack as a clause."""
    n_texts = reading.training.get("n_texts")
    if not n_texts:
        return "not trained"
    if n_first := _base_pairs(reading.training):
        writes = INVERSION_ATTACKS[reading.attack].writes_sentences
        own = "for its language model" if writes else "to correct its first answers"
        return f"trained on {n_first:,} sentences to name words, and on {n_texts:,} {own}"
    return f"trained once on {n_texts:,} example sentences{_base_clause(reading.training)}"


def _time_in_words(reading: Reading) -> str:
    """Describe the answering time of a reading's attack as a clause."""
    did = "stopped after" if reading.is_unfinished else "answered in"
    return f"{did} {_format_duration(reading.seconds)}"
