"""A setting of a defence as the trade-off shows it: by a name that stays, with promise and cost.

The name is what the command line takes: `text_to_text:eta=75`, `text_to_text:eta=60+int8`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.defences.entries import DefenceEntry, chain_of, settings_by_stage
from core.defences.order import check_order
from core.defences.registry import DEFENCES, ChainEntry, entry_of, guarantee_of, stages_of
from core.defences.shipped import find_shipped
from core.defences.told import read_defence
from core.defences.trained.registry import TRAINED_DEFENCES
from core.errors import InvalidInputError
from core.specs import DefenceSpec
from core.studies.defence_grid import is_of_network, sent_by
from core.studies.tradeoff_point import Point

__all__ = [
    "NO_PROMISE",
    "can_follow",
    "entry_shown",
    "first_of",
    "milliseconds_said",
    "minutes_said",
    "promise_said",
    "promises",
    "read_setting",
    "setting_name",
    "training_command",
    "why_not_tried",
]

NO_PROMISE = "nothing: each token has a set of its own, and its set shows"
"""Of CusText with `mapping=aggressive`, whatever its ε."""

_NO_NOISE = "nothing: at an ε of 0 it is trained without noise"
"""Of a classifier that is trained as any other, to be held against private ones."""


def setting_name(defence: str, settings: Mapping[str, Any]) -> str:
    """Return the name of a defence at its settings; `read_setting` reads it.

    Examples
    --------
    >>> setting_name("text_to_text+int8", {"text_to_text.eta": 60.0})
    'text_to_text:eta=60+int8'
    >>> setting_name("custext", {"mapping": "aggressive", "epsilon": 4.0})
    'custext:epsilon=4,mapping=aggressive'
    """
    stages = stages_of(defence)
    parts = []
    for stage in stages:
        head = f"{stage}." if len(stages) > 1 else ""
        own = {k.removeprefix(head): v for k, v in settings.items() if k.startswith(head)}
        told = ",".join(f"{name}={_number(own[name])}" for name in sorted(own) if "." not in name)
        parts.append(f"{stage}:{told}" if told else stage)
    return "+".join(parts)


def _number(value: Any) -> str:
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)


def read_setting(told: str, option: str = "defence") -> DefenceSpec:
    """Return the defence that a name stands for.

    Raises
    ------
    InvalidInputError
        No such defence or setting, a value outside its range, or stages that cannot follow each
        other; the message says what is wrong and names the remedy.

    Examples
    --------
    >>> read_setting("truncation:dimension=96")
    DefenceSpec(name='truncation', settings=(('dimension', 96),))
    """
    check_order([each.partition(":")[0] for each in stages_of(told)])
    return read_defence(told, option=option, known=_KNOWN)


_KNOWN: Mapping[str, DefenceEntry] = {**DEFENCES, **TRAINED_DEFENCES}


def entry_shown(defence: str) -> DefenceEntry:
    """Return what is known of a defence, a trained one or a chain; of an unknown one its name."""
    try:
        if len(stages_of(defence)) > 1 and all(s in _KNOWN for s in stages_of(defence)):
            return chain_of(stages_of(defence), _KNOWN)
        return _KNOWN[defence] if defence in _KNOWN else entry_of(defence)
    except InvalidInputError:  # rows of other versions may name what this one does not have
        return DefenceEntry(defence, "", "", "", "vector")


def can_follow(stages: Sequence[str]) -> list[str]:
    """Return the defences that can stand after these in a chain.

    Examples
    --------
    >>> can_follow(["binary", "text_to_text"])
    []
    """
    found = []
    for name, entry in DEFENCES.items():
        if entry.is_baseline or name in stages:
            continue
        try:
            chain_of((*stages, name), _KNOWN)
        except InvalidInputError:
            continue
        found.append(name)
    return found


def first_of(spec: DefenceSpec) -> DefenceSpec:
    """Return the first stage of a chain with its settings: what a chain promises of its input.

    Of a network that reads what is sent, what its users send it by.
    """
    if is_of_network(spec.name):
        return sent_by(dict(spec.settings))
    entry = entry_shown(spec.name)
    if not isinstance(entry, ChainEntry):
        return spec
    first = entry.stages[0]
    return DefenceSpec.of(first, settings_by_stage(entry, dict(spec.settings))[first])


def promises(point: Point, reads: str = "words") -> bool:
    """Whether a defence at its settings promises anything of what is read.

    One that protects a model's training texts promises nothing of vectors, and one that protects
    a vector or a text nothing of whether it was trained on.
    """
    entry = entry_shown(point.defence)
    if (entry.acts_on == _MODEL) != (reads == "membership"):
        return False
    spec = DefenceSpec.of(point.defence, dict(point.settings))
    return bool(entry.guarantee and guarantee_of(spec))


_MODEL = "model"
"""What a defence acts on that leaves vectors as they are."""


def promise_said(spec: DefenceSpec) -> str:
    """Return what a defence promises at its settings; empty where its kind promises nothing."""
    entry = entry_shown(spec.name)
    nothing = _NO_NOISE if entry.acts_on == _MODEL else NO_PROMISE
    return entry.guarantee and (guarantee_of(spec) or nothing)


def why_not_tried(spec: DefenceSpec, encoder: str) -> str:
    """Return why a sentence cannot be put through a defence here and now; empty where it can.

    What is trained can be where it ships for the encoder of that name.

    Examples
    --------
    >>> why_not_tried(DefenceSpec(name="gaussian+int8"), "minilm")
    ''
    """
    defence = spec.name
    unknown = [name for name in stages_of(defence) if name not in DEFENCES]
    if entry_shown(defence).acts_on == _MODEL:
        return (
            "It protects the texts that a classifier was trained on. The vector of a sentence "
            "stays as it is, so there is nothing to try on one."
        )
    if is_of_network(defence):
        return (
            "It is a network that was fine-tuned on what users send, and releases nothing itself. "
            "What leaves is what its users' mechanism releases: choose that to try a sentence."
        )
    trained = [TRAINED_DEFENCES[name].title for name in unknown if name in TRAINED_DEFENCES]
    if trained and len(trained) == len(unknown):
        if find_shipped(spec, encoder) is not None:
            return ""
        return (
            f"{trained[0]} is trained, and none ships that was trained at this setting: without "
            "one there is nothing to protect a sentence with. Train it by the command below; "
            "`--encoder defended:DIR` then reads through it."
        )
    return "It is trained, or of another version: it cannot be tried here." if unknown else ""


def training_command(spec: DefenceSpec) -> str:
    """Return the command that trains a defence; empty where nothing is trained.

    Examples
    --------
    >>> training_command(DefenceSpec(name="leace+int8"))
    'python -m core defend --defence leace --texts FILE --label-column COLUMN --out DIR'
    """
    stages = stages_of(spec.name)
    for name in stages:
        entry = TRAINED_DEFENCES.get(name)
        if entry is not None:
            head = f"{name}." if len(stages) > 1 else ""
            own = {k.removeprefix(head): v for k, v in spec.settings if k.startswith(head)}
            told = "".join(f" --set {k}={_number(v)}" for k, v in own.items() if "." not in k)
            is_labelled = entry.needs_labels or own.get("against") == "attribute"
            label = " --label-column COLUMN" if is_labelled else ""
            return f"python -m core defend --defence {name}{told} --texts FILE{label} --out DIR"
    return ""


_UNTIMED = "not timed"


def minutes_said(point: Point) -> str:
    """Return how long a defence trained."""
    minutes = point.training_minutes
    if minutes is None:
        return _UNTIMED
    return _brief(minutes, "min") if minutes else "nothing is trained"


def milliseconds_said(point: Point) -> str:
    """Return how long a text takes, encoder and defence."""
    return _UNTIMED if point.milliseconds is None else _brief(point.milliseconds, "ms")


def _brief(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
