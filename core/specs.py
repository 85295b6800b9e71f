"""Declared settings, and frozen, validated specifications of what to run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from leakscope.core.errors import InvalidInputError
from leakscope.core.ranges import Fixed, Range, Strength

REQUIRED = dataclasses.MISSING
"""Default of a setting that must be given."""

MOST_WHOLE = 2**32 - 1
"""Largest integer of a setting that declares no maximum, and of a seed."""


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] | None = None,
    paper: str = "",
    flag: str = "",
    holds: str = "",
    at: Literal["fit", "answer"] = "fit",
    search: Range | Fixed | None = None,
    strength: Strength | None = None,
) -> Any:
    """Declare a setting: a dataclass field with help text, allowed range and search range.

    The dashboard draws a control from it and the command line checks `--set name=value` by it.

    Parameters
    ----------
    default, help
        The default value (`REQUIRED` if it must be given), and the help text.
    low, high, choices
        Allowed values; both ends are included.
    paper : str
        The publication that the default comes from.
    flag : str
        The command-line option that sets it, if it differs from the name.
    holds : str
        The kind of files that it names, such as `labelled`.
    at : str
        `fit` where it belongs to the training; `answer` where it acts when the fitted thing is
        used, so that it may be changed without retraining.
    search : Range or Fixed, optional
        The range that a hyperparameter search varies, or the value that it fixes.
    strength : Strength, optional
        Marks the setting that is a defence's strength.
    """
    meta = {
        "help": help,
        "low": low,
        "high": high,
        "choices": choices,
        "paper": paper,
        "flag": flag,
        "holds": holds,
        "at": at,
        "search": search,
        "strength": strength,
    }
    return field(default=default, metadata=meta)


def settings_of(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the dataclass fields of a class that are declared settings, by name."""
    return {f.name: f for f in dataclasses.fields(kind) if "help" in f.metadata}


def setting_values(instance: Any) -> dict[str, Any]:
    """Return the values of an instance's declared settings by name."""
    return {name: getattr(instance, name) for name in settings_of(type(instance))}


def inference_settings(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """Return a class's settings that act after training, at inference, by name."""
    return {k: f for k, f in settings_of(kind).items() if f.metadata["at"] == "answer"}


def search_space(kind: type) -> dict[str, Range]:
    """Return the search range, by name, of each setting that a hyperparameter search varies."""
    found = {k: f.metadata["search"] for k, f in settings_of(kind).items()}
    return {k: v for k, v in found.items() if isinstance(v, Range)}


def fixed_search_settings(kind: type) -> dict[str, Any]:
    """Return the settings, by name, that have one fixed value in a hyperparameter search."""
    found = {k: f.metadata["search"] for k, f in settings_of(kind).items()}
    return {k: v.value for k, v in found.items() if isinstance(v, Fixed)}


def strength_setting(kind: type) -> tuple[str, Strength] | None:
    """Return the name and `Strength` of a defence's strength setting; None if it has none."""
    found = ((k, f.metadata["strength"]) for k, f in settings_of(kind).items())
    return next(((k, v) for k, v in found if v is not None), None)


def validate_settings(instance: Any) -> None:
    """Raise InvalidInputError for a setting outside its declared range, naming the range."""
    for name, spec in settings_of(type(instance)).items():
        value, meta = getattr(instance, name), spec.metadata
        where = f"{type(instance).__name__}.{name}"
        for each in value if isinstance(value, tuple) else (value,):
            _check(each, where, meta)


def _check(value: Any, where: str, meta: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for one value outside its choices or its [low, high]."""
    if meta["choices"] is not None and value not in meta["choices"]:
        raise InvalidInputError(f"{where} must be one of {meta['choices']}, got {value!r}.")
    if value is None or isinstance(value, bool | str | tuple):
        return
    low, high = meta["low"], meta["high"]
    if isinstance(value, int):
        low = -MOST_WHOLE if low is None else low
        high = MOST_WHOLE if high is None else high
    is_within = (low is None or value >= low) and (high is None or value <= high)
    if not (is_within and math.isfinite(value)):
        bounds = f"{'(-∞' if low is None else f'[{low}'}, {'∞)' if high is None else f'{high}]'}"
        raise InvalidInputError(f"{where} must lie in {bounds}, got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """An encoder to load.

    `name` is `minilm` (bundled), `st:ID` for a Sentence-Transformers model or `mlm:ID` for a masked
    language model, ID being a hub id or a folder; `tfidf:FOLDER` and the like for an encoder that
    was fitted here. `layer` None is the last. Of `backend`, `openvino` has to be installed, and
    `auto` takes it for many texts where it was measured to be faster on this processor.
    """

    name: str = setting("minilm", "minilm, st:ID or mlm:ID", flag="encoder")
    layer: int | None = setting(None, "hidden layer to pool, 0 being token vectors")
    device: str = setting("auto", "auto, cpu, cuda or mps")
    precision: str = setting("auto", "auto, float32, bfloat16 or float16")
    backend: str = setting("auto", "auto, torch or openvino")


@dataclass(frozen=True, kw_only=True)
class _NamedSpec:
    """A registry name with the settings that differ from the defaults."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any] | None = None) -> Self:
        """Build a spec from a name and a mapping of settings."""
        return cls(name=name, settings=tuple(sorted((settings or {}).items())))

    @property
    def key(self) -> str:
        """A short stable hash of the spec, for file names."""
        text = json.dumps([self.name, self.settings], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class AttackSpec(_NamedSpec):
    """An attack by its registry name, with the settings that differ from its defaults."""


@dataclass(frozen=True, kw_only=True)
class DefenceSpec(_NamedSpec):
    """A defence by its registry name, with the settings that differ from its defaults."""


@dataclass(frozen=True, kw_only=True)
class FittedEncoderSpec(_NamedSpec):
    """An encoder to be trained, by its registry name, with the settings that differ."""
