"""A study's settings as arguments of a command: declared once, in the study's own class."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.arguments import read_value
from core.cli.sources import checked_reference
from core.corpora import Columns, split_reference
from core.errors import InvalidInputError, similar
from core.specs import settings_of, validate_settings

__all__ = ["add_settings", "option_of", "spec_of", "study_from"]

_CORPORA = ("target", "other")
"""Settings that name a corpus."""


def option_of(name: str, kind: type) -> str:
    """Return the option that gives a setting, such as `--n-auxiliary`."""
    return "--" + (settings_of(kind)[name].metadata["flag"] or name.replace("_", "-"))


def add_settings(parser: argparse.ArgumentParser, kind: type) -> None:
    """Declare an option for each setting of a study; what is not given keeps its default."""
    hints = typing.get_type_hints(kind)
    for name, field in settings_of(kind).items():
        told: dict[str, Any] = {"dest": name, "default": argparse.SUPPRESS}
        usual = "" if field.default in (MISSING, (), "") else f" (default: {_said(field.default)})"
        told["help"] = field.metadata["help"] + usual
        told["required"] = field.default is MISSING
        parser.add_argument(option_of(name, kind), **told, **_shape(hints[name], field.metadata))


def _shape(hint: Any, meta: Any) -> dict[str, Any]:
    """Return how many words of which type an option takes."""
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    shape: dict[str, Any] = {"choices": meta["choices"]} if meta["choices"] else {}
    if typing.get_origin(hint) is not tuple:
        return {"type": hint, **shape}
    inner, *rest = typing.get_args(hint)
    if typing.get_origin(inner) is tuple:  # pairs of a name and a value
        return {"action": "append", "metavar": "NAME=VALUE"}
    is_open = rest == [Ellipsis]
    return {"type": inner, "nargs": "+" if is_open else 1 + len(rest), **shape}


def _said(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def study_from(arguments: argparse.Namespace, kind: type) -> Any:
    """Return the study that the arguments describe, its words and its files checked.

    Raises
    ------
    InvalidInputError
        A word that names nothing, a number outside its range, or a file that cannot be read.
    """
    hints = typing.get_type_hints(kind)
    given = {n: v for n, v in vars(arguments).items() if n in settings_of(kind)}
    attacks = tuple(given.get("attacks", getattr(kind, "attacks", ())))
    _check_attacks(attacks)
    for name, value in given.items():
        if _is_pairs(hints[name]):
            given[name] = tuple(_typed(pair, attacks) for pair in value)
        elif isinstance(value, list):
            given[name] = tuple(value)
    study = kind(**given)
    validate_settings(study)
    return _with_files(study, arguments)


def _is_pairs(hint: Any) -> bool:
    inner = typing.get_args(hint)[:1]
    return bool(inner) and typing.get_origin(inner[0]) is tuple


def _check_attacks(attacks: Sequence[str]) -> None:
    for name in attacks:
        if name not in INVERSION_ATTACKS:
            raise InvalidInputError(
                f"--attacks must be of {', '.join(INVERSION_ATTACKS)}, got {name!r}."
                + similar(name, INVERSION_ATTACKS)
            )


def _typed(pair: str, attacks: Sequence[str]) -> tuple[str, Any]:
    """Read `NAME=VALUE` by the type that the attacks of a study declare."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise InvalidInputError(f"--set and --variant take NAME=VALUE, got {pair!r}.")
    for attack in attacks:
        kind = INVERSION_ATTACKS[attack].kind
        if name in settings_of(kind):
            return name, read_value(name, typing.get_type_hints(kind)[name], text)
    known = sorted({s for attack in attacks for s in settings_of(INVERSION_ATTACKS[attack].kind)})
    raise InvalidInputError(
        f"None of this study's attacks has a setting {name!r}; they have "
        f"{', '.join(known) or 'none'}.{similar(name, known)}"
    )


def _with_files(study: Any, arguments: argparse.Namespace) -> Any:
    """Return the study with its corpora checked, found in --files where they are not here."""
    from dataclasses import replace

    needed = Columns(text=arguments.text_column, others=tuple(getattr(study, "columns", ())))
    found: dict[str, Any] = {}
    for name in _CORPORA:
        if name in settings_of(type(study)):
            place = _located(getattr(study, name), arguments.files)
            found[name] = checked_reference(place, needed if name == "target" else None)
    if "encoders" in settings_of(type(study)):
        found["encoders"] = tuple(
            f"{kind}:{_located(place, arguments.files)}" if place else kind
            for kind, _, place in (e.partition(":") for e in study.encoders)
        )
    return replace(study, **found)


def _located(name: str, files: Path | None) -> str:
    path, column = split_reference(name)
    if files is None or Path(path).exists() or not (files / path).exists():
        return name
    return f"{files / path}{f'#{column}' if column else ''}"


def spec_of(name: str, study: Any) -> dict[str, Any]:
    """Return what `--spec` reads back: the settings that are not their defaults, files by name."""
    spec: dict[str, Any] = {"study": name}
    hints = typing.get_type_hints(type(study))
    for setting, field in settings_of(type(study)).items():
        value = getattr(study, setting)
        if value == field.default:
            continue
        if setting in _CORPORA:
            path, column = split_reference(value)
            value = Path(path).name + (f"#{column}" if column else "")
        elif setting == "encoders":
            value = [_by_name(encoder) for encoder in value]
        elif _is_pairs(hints[setting]):
            value = dict(value)
        elif isinstance(value, tuple):
            value = list(value)
        spec[option_of(setting, type(study)).removeprefix("--").replace("-", "_")] = value
    return spec


def _by_name(encoder: str) -> str:
    kind, _, place = encoder.partition(":")
    return f"{kind}:{Path(place).name}" if place and Path(place).is_dir() else encoder
