"""Names, guarantees and training commands of a defence's settings, for pages and commands.

The name is what the command line takes: `text_to_text:eta=75`, `text_to_text:eta=60+int8`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leakscope.core.defences.entries import (
    DefenceEntry,
    chain_of,
    first_stage,
    stages_of,
)
from leakscope.core.defences.registry import DEFENCES, check_order, entry_of, guarantee_of
from leakscope.core.defences.spec_parser import read_defence
from leakscope.core.defences.stored import find_shipped
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES, is_of_network
from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import DefenceSpec

NO_PROMISE = "none, because each token has its own set, and the set is visible"
"""The guarantee of CusText with `mapping=aggressive`, for any ε."""

_NO_NOISE = "none, because with ε = 0 it is trained without noise"
"""The guarantee of a classifier trained without noise, the reference of private ones."""


def setting_name(defence: str, settings: Mapping[str, Any]) -> str:
    """Format a defence and its settings as `NAME:SETTING=VALUE`, as `read_setting` parses it.

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
        told = ",".join(
            f"{name}={_format_value(own[name])}" for name in sorted(own) if "." not in name
        )
        parts.append(f"{stage}:{told}" if told else stage)
    return "+".join(parts)


def _format_value(value: Any) -> str:
    """Format a setting's value as text; floats are as short as possible."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)


def read_setting(told: str, option: str = "defence") -> DefenceSpec:
    """Parse text such as `truncation:dimension=96+int8` into a DefenceSpec.

    Raises
    ------
    InvalidInputError
        No such defence or setting, a value outside its range, or stages in an impossible order; the
        message names the remedy.

    Examples
    --------
    >>> read_setting("truncation:dimension=96")
    DefenceSpec(name='truncation', settings=(('dimension', 96),))
    """
    check_order([each.partition(":")[0] for each in stages_of(told)])
    return read_defence(told, option=option, known=_KNOWN)


_KNOWN: Mapping[str, DefenceEntry] = {**DEFENCES, **TRAINED_DEFENCES}


def entry_shown(defence: str) -> DefenceEntry:
    """Return a defence's or chain's entry by name; an entry with only a title if unknown."""
    try:
        if len(stages_of(defence)) > 1 and all(s in _KNOWN for s in stages_of(defence)):
            return chain_of(stages_of(defence), _KNOWN)
        return _KNOWN[defence] if defence in _KNOWN else entry_of(defence)
    except InvalidInputError:  # rows of other versions may name unknown defences
        return DefenceEntry(defence, "", "", "", "vector")


def can_follow(stages: Sequence[str]) -> list[str]:
    """Return the names of the defences that can be appended to a chain of the given stages.

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
    """Return the spec of a chain's first stage; of a network, its input mechanism's spec.

    For a network, this is the mechanism that protects its users' texts.
    """
    if is_of_network(spec.name):
        return input_mechanism(dict(spec.settings))
    return first_stage(entry_shown(spec.name), spec)


def describe_promise(spec: DefenceSpec) -> str:
    """Describe in words what a spec guarantees; "" if its kind of defence never does."""
    entry = entry_shown(spec.name)
    nothing = _NO_NOISE if entry.acts_on == "model" else NO_PROMISE
    return entry.guarantee and (guarantee_of(spec) or nothing)


def why_not_tried(spec: DefenceSpec, encoder: str) -> str:
    """Return the reason why a defence cannot be tried on a sentence here; "" if it can.

    A trained defence can be used if it ships for the encoder.

    Examples
    --------
    >>> why_not_tried(DefenceSpec(name="gaussian+int8"), "minilm")
    ''
    """
    defence = spec.name
    unknown = [name for name in stages_of(defence) if name not in DEFENCES]
    if entry_shown(defence).acts_on == "model":
        return (
            "It protects the texts that a classifier was trained on. It leaves the vector of a "
            "sentence unchanged, so there is nothing to try here."
        )
    if is_of_network(defence):
        return (
            "It is a network, fine-tuned on protected texts; it releases nothing itself. Choose "
            "the mechanism that protects its users' texts to try a sentence."
        )
    trained = [TRAINED_DEFENCES[name].title for name in unknown if name in TRAINED_DEFENCES]
    if trained and len(trained) == len(unknown):
        if find_shipped(spec, encoder) is not None:
            return ""
        return (
            f"{trained[0]} has to be trained, and no trained one ships for this setting. Train it "
            "with the command below, then use it as `--encoder defended:DIR`."
        )
    return (
        "It cannot be tried here: it is a trained defence, or comes from another version."
        if unknown
        else ""
    )


def training_command(spec: DefenceSpec) -> str:
    """Return the shell command that trains a spec's trained stage; "" if it has none.

    Examples
    --------
    >>> training_command(DefenceSpec(name="leace+int8"))
    'leakscope defend --defence leace --texts FILE --label-column COLUMN --out DIR'
    """
    stages = stages_of(spec.name)
    for name in stages:
        entry = TRAINED_DEFENCES.get(name)
        if entry is not None:
            head = f"{name}." if len(stages) > 1 else ""
            own = {k.removeprefix(head): v for k, v in spec.settings if k.startswith(head)}
            told = "".join(f" --set {k}={_format_value(v)}" for k, v in own.items() if "." not in k)
            is_labelled = entry.needs_labels or own.get("against") == "attribute"
            label = " --label-column COLUMN" if is_labelled else ""
            return f"leakscope defend --defence {name}{told} --texts FILE{label} --out DIR"
    return ""


def strength(defence: str, settings: Mapping[str, Any]) -> str:
    """Format a defence's settings as short text, such as `η 75` or `to 96 dimensions`.

    Examples
    --------
    >>> strength("text_to_text", {"eta": 75.0}), strength("truncation", {"dimension": 96})
    ('η 75', 'to 96 dimensions')
    >>> strength("binary", {}), strength("text_to_text+int8", {"text_to_text.eta": 60.0})
    ('', 'η 60')
    >>> strength("adversarial", {"against": "words", "weight": 0.3})
    'against words, λ 0.3'
    """
    known = entry_shown(defence).strengths
    return ", ".join(
        known[k].named(v) if k in known else f"{k.rpartition('.')[2]} {v}"
        for k, v in settings.items()
    )


def input_mechanism(settings: Mapping[str, Any]) -> DefenceSpec:
    """Build the spec of the mechanism that protects a network's input, from its settings.

    Examples
    --------
    >>> input_mechanism({"eta": 75.0, "network": "bilstm", "sends": "text_to_text"})
    DefenceSpec(name='text_to_text', settings=(('eta', 75.0),))
    """
    return DefenceSpec.of(settings["sends"], {"eta": settings["eta"]})
