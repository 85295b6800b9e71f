"""What to run: frozen, validated configurations, usable as cache keys and written into results."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from core.errors import InvalidInputError
from core.ranges import Fixed, Range, Strength

__all__ = [
    "MOST_WHOLE",
    "REQUIRED",
    "AttackSpec",
    "DefenceSpec",
    "EncoderSpec",
    "FittedEncoderSpec",
    "search_space",
    "searched_with",
    "setting",
    "settings_at_answering",
    "settings_of",
    "strength_of",
    "validate_settings",
]

REQUIRED = dataclasses.MISSING
"""As a setting's default: it has to be given."""

MOST_WHOLE = 2**32 - 1
"""Largest whole number of a setting that declares no other, and of a seed."""


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
    """Declare a setting: a dataclass field that knows its help, its range and its use.

    The dashboard draws a control from it and the command line checks `--set name=value` by it.

    Parameters
    ----------
    default, help
        Its value unless another is given (`REQUIRED`: there is none), and what it is.
    low, high, choices
        What is allowed; both ends included.
    paper : str
        Where the default comes from.
    flag : str
        The option of a command that sets it, where it is another than the name.
    holds : str
        What names of files in it are of, such as `labelled`.
    at : str
        `fit` where it belongs to the training; `answer` where it acts when the fitted thing is
        used, so that it may be changed without training anew.
    search : Range or Fixed, optional
        What a search for better settings tries of it, or takes for every trial.
    strength : Strength, optional
        Of the one setting that says how strong a defence is.
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
    """Return the declared settings of a class by name."""
    return {f.name: f for f in dataclasses.fields(kind) if "help" in f.metadata}


def settings_at_answering(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the settings that act when a fitted thing is used; the others belong to training."""
    return {k: f for k, f in settings_of(kind).items() if f.metadata["at"] == "answer"}


def search_space(kind: type) -> dict[str, Range]:
    """Return what a search for better settings tries, by setting."""
    found = {k: f.metadata["search"] for k, f in settings_of(kind).items()}
    return {k: v for k, v in found.items() if isinstance(v, Range)}


def searched_with(kind: type) -> dict[str, Any]:
    """Return the settings that every trial of a search takes, unless others are given."""
    found = {k: f.metadata["search"] for k, f in settings_of(kind).items()}
    return {k: v.value for k, v in found.items() if isinstance(v, Fixed)}


def strength_of(kind: type) -> tuple[str, Strength] | None:
    """Return the setting that says how strong a defence is, and what to try of it."""
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

    Parameters
    ----------
    name : str
        `minilm` (bundled), `st:ID` for a Sentence-Transformers model or `mlm:ID` for a masked
        language model, ID being a hub id or a folder; `tfidf:FOLDER` and the like for an encoder
        that was fitted here.
    layer : int or None
        Hidden layer to pool, 0 being the mean of token vectors; None for the last.
    device, precision : str
        `auto`, or the device and the precision of matrix products.
    backend : str
        `torch`; `openvino`, which has to be installed; or `auto`: OpenVINO for many texts where it
        is installed and was measured to be faster on this processor.
    """

    name: str = "minilm"
    layer: int | None = None
    device: str = "auto"
    precision: str = "auto"
    backend: str = "auto"


@dataclass(frozen=True, kw_only=True)
class _NamedSpec:
    """Something of a registry by its name, with the settings that differ from its defaults."""

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any] | None = None) -> Self:
        """Build a spec from a mapping of settings."""
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
