"""A study's settings as arguments of a command: declared once, in the study's own class."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.arguments import read_value, whole_number
from core.cli.study_files import bare, held, with_files
from core.errors import InvalidInputError, similar
from core.specs import settings_of, validate_settings

__all__ = ["add_settings", "option_of", "spec_of", "study_from"]


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
        return {"type": _read(hint, meta), **shape}
    inner, *rest = typing.get_args(hint)
    if typing.get_origin(inner) is tuple:  # pairs of a name and a value
        return {"action": "append", "metavar": "NAME=VALUE"}
    is_open = rest == [Ellipsis]
    return {"type": _read(inner, meta), "nargs": "+" if is_open else 1 + len(rest), **shape}


def _read(kind: Any, meta: Any) -> Any:
    """Return what reads one word: of a whole number it knows the range."""
    ends = {end: meta[end] for end in ("low", "high") if meta[end] is not None}
    return partial(whole_number, **ends) if kind is int and ends else kind


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
    attacks = _attacks_of(kind, given)
    for name, value in given.items():
        if _is_pairs(hints[name]):
            given[name] = tuple(_typed(pair, attacks) for pair in value)
        elif isinstance(value, list):
            given[name] = tuple(value)
    study = kind(**given)
    validate_settings(study)
    return with_files(study, folder=arguments.files, text_column=arguments.text_column)


def _is_pairs(hint: Any) -> bool:
    inner = typing.get_args(hint)[:1]
    return bool(inner) and typing.get_origin(inner[0]) is tuple


def _attacks_of(kind: type, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the attacks of a study, which may have one or several."""
    option = "attack" if "attack" in settings_of(kind) else "attacks"
    chosen = given.get(option, getattr(kind, option, ()))
    attacks = (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for name in attacks:
        if name not in INVERSION_ATTACKS:
            raise InvalidInputError(
                f"--{option} must be of {', '.join(INVERSION_ATTACKS)}, got {name!r}."
                + similar(name, INVERSION_ATTACKS)
            )
    return attacks


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


def _by_name(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values by name; a name that stands there more than once has a list of them."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def spec_of(name: str, study: Any) -> dict[str, Any]:
    """Return what `--spec` reads back: the settings that are not their defaults, files by name."""
    spec: dict[str, Any] = {"study": name}
    hints, files = typing.get_type_hints(type(study)), held(type(study))
    for setting, field in settings_of(type(study)).items():
        value = getattr(study, setting)
        if value == field.default:
            continue
        if setting in files:
            one_by_one = [value] if isinstance(value, str) else value
            named = [bare(each, files[setting]) for each in one_by_one]
            value = named[0] if isinstance(value, str) else named
        elif _is_pairs(hints[setting]):
            value = _by_name(value)
        elif isinstance(value, tuple):
            value = list(value)
        spec[option_of(setting, type(study)).removeprefix("--").replace("-", "_")] = value
    return spec
