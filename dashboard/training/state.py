"""What one visitor has chosen on the page of training: the part, and what of it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.studies.training_points import (
    Adversarial,
    Pretrained,
    Trial,
    TrialRequest,
    UnderNoise,
)
from core.studies.training_summary import Summary
from dashboard.address import Address, Parameter
from dashboard.kept import Kept
from dashboard.state import is_presenting, keep_choice

__all__ = [
    "PARTS",
    "STUDIES",
    "USUAL",
    "WEIGHTS",
    "address",
    "chosen",
    "key_of",
    "offer",
    "part_picker",
    "remember_trial",
    "restore_trial",
    "trial_of",
]

PARTS = {
    "adversary": "Against an adversary",
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
"""Which study measures each part."""

WEIGHTS = ("0", "0.3", "1", "3", "10")
"""λ of the small training that one can start oneself."""

USUAL = TrialRequest()
"""What that training is, but for λ."""

_TRIALS: Kept[TrialRequest, Trial] = Kept("_training_trials", 5)
trial_of = _TRIALS.get
remember_trial = _TRIALS.add

_HIDES = ("words", "attribute")


def key_of(name: str) -> str:
    """Return the key of a control of the page."""
    return f"training_{name}"


def chosen(name: str) -> Any:
    """Return what a control of the page stands at."""
    return st.session_state.get(key_of(name))


def address(found: Mapping[str, Summary]) -> Address:
    """Return what an address may ask for: `?part=adversary&hides=words&encoder=minilm`.

    Of networks under noise `?part=noise&task=sst2&network=bilstm`, and
    `?part=pretraining&task=sst2&sends=text_to_text&eta=65`.

    Parameters
    ----------
    found : mapping
        Part to what was measured of it, of those that were.
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
        "part": list(PARTS), "hides": _HIDES, "encoder": encoders, "task": tasks,
        "network": networks, "sends": sends, "eta": [f"{eta:g}" for eta in sorted(etas)],
        "weight": WEIGHTS,
    }  # fmt: skip
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


def offer(
    name: str, label: str, options: Sequence[str], said: Callable[[str], str], about: str
) -> str:
    """Draw a choice and return it; nothing is drawn of a single option, or presented."""
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
            format_func=said,
            help=about,
        )
    return str(chosen(name))


def restore_trial(request: TrialRequest) -> None:
    """Set the controls to what a job was asked for: the page was reloaded meanwhile."""
    st.session_state[key_of("weight")] = f"{request.weight:g}"
    st.session_state[key_of("part")] = "adversary"


def part_picker() -> str:
    """Draw the choice of the part; return it."""
    keep_choice(key_of("part"), list(PARTS))
    if not is_presenting():
        st.pills(
            "Trained",
            list(PARTS),
            key=key_of("part"),
            required=True,
            wrap=True,
            persist_state="session",
            format_func=PARTS.__getitem__,
            help="Ways of training for privacy, each with what was measured of it",
        )
    return str(chosen("part"))
