"""The visitor's choices on the training page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from leakscope.core.studies.training.summary import (
    Adversarial,
    Pretrained,
    Summary,
    Trial,
    TrialRequest,
    UnderNoise,
)
from leakscope.dashboard.address import Address, Parameter
from leakscope.dashboard.ui.session_results import SessionCache
from leakscope.dashboard.ui.state import is_presenting, keep_choice

PARTS = {
    "adversary": "Against an attacker",
    "noise": "Under noise",
    "pretraining": "Pretrained under noise",
    "private": "Differential privacy",
}
STUDIES = {
    "adversary": "adversarial",
    "noise": "constrained",
    "pretraining": "adaptive",
    "private": "private-training",
}
"""The study of each part."""

WEIGHTS = ("0", "0.3", "1", "3", "10")
"""The choices of λ for the live training."""

USUAL = TrialRequest()
"""The settings of the live training, except λ."""

_TRIALS: SessionCache[TrialRequest, Trial] = SessionCache("_training_trials", 5)
trial_of = _TRIALS.get
remember_trial = _TRIALS.add

_HIDES = ("words", "attribute")


def key_of(name: str) -> str:
    """Return the session key of a named control."""
    return f"training_{name}"


def choice(name: str) -> Any:
    """Return the current value of a named control from the session."""
    return st.session_state.get(key_of(name))


def address(found: Mapping[str, Summary]) -> Address:
    """Build the page's address parameters: `?part=adversary&hides=words&encoder=minilm`.

    For networks under noise, `?part=noise&task=sst2&network=bilstm`; for pretraining,
    `?part=pretraining&task=sst2&sends=text_to_text&eta=65`.

    Parameters
    ----------
    found : mapping
        The results of each part that was measured.
    """
    encoders: list[str] = []
    tasks: list[str] = []
    networks: list[str] = []
    sends: list[str] = []
    etas: list[float] = []
    for each in found.values():
        if isinstance(each, Adversarial):
            encoders += each.encoders
            continue
        tasks += each.tasks
        if isinstance(each, UnderNoise):
            networks += [point.reader for point in each.points]
        if isinstance(each, Pretrained):
            sends += [point.mechanism for point in each.points]
            etas += [point.eta for point in each.points]
    options: dict[str, Sequence[str]] = {
        "part": list(PARTS),
        "hides": _HIDES,
        "encoder": encoders,
        "task": tasks,
        "network": networks,
        "sends": sends,
        "eta": [f"{eta:g}" for eta in sorted(etas)],
        "weight": WEIGHTS,
    }
    defaults = {
        "part": next((part for part in PARTS if part in found), "adversary"),
        "weight": "1",
    }
    return Address(
        "training",
        tuple(
            Parameter(
                name=name,
                key=key_of(name),
                default=defaults.get(name),
                options=list(dict.fromkeys(allowed)),
            )
            for name, allowed in options.items()
        ),
    )


def option_picker(
    name: str, label: str, options: Sequence[str], format_option: Callable[[str], str], about: str
) -> str:
    """Draw a selector if there are several options (not in a presentation); return the choice."""
    key = key_of(name)
    keep_choice(key, options)
    if len(options) > 1 and not is_presenting():
        st.pills(
            label,
            list(options),
            key=key,
            required=True,
            wrap=True,
            persist_state="session",
            format_func=format_option,
            help=about,
        )
    return str(choice(name))


def part_picker() -> str:
    """Draw the selector of the page's section; return the selected section's name."""
    keep_choice(key_of("part"), list(PARTS))
    if not is_presenting():
        st.pills(
            "Training",
            list(PARTS),
            key=key_of("part"),
            required=True,
            wrap=True,
            persist_state="session",
            format_func=PARTS.__getitem__,
            help="Ways of training for privacy, each with its results",
        )
    return str(choice("part"))
