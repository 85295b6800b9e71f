"""Command-line options: from the `setting()`s of dataclasses, shared by commands, and `--set`."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Sequence
from dataclasses import MISSING
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from leakscope.core.cli.shared.output import show_error
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.specs import (
    MOST_WHOLE,
    AttackSpec,
    EncoderSpec,
    settings_of,
    validate_settings,
)

if TYPE_CHECKING:
    from leakscope.core.corpora.rows import Columns


class _HelpFormatter(argparse.HelpFormatter):
    """Wraps each paragraph of a help text, except those with indented lines, such as examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap each paragraph of a help text to the width; keep indented lines."""
        fill = super()._fill_text
        parts = text.split("\n\n")
        return "\n\n".join(part if "\n  " in part else fill(part, width, indent) for part in parts)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line on standard error."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a parser without abbreviated options, with wrapped help texts."""
        usual = {"allow_abbrev": False, "formatter_class": _HelpFormatter}
        super().__init__(*args, **{**usual, **kwargs})
        self.register("type", int, whole_number)

    def error(self, message: str) -> NoReturn:
        """Print the message as one line on standard error and exit with status 2."""
        show_error(f"{message} (see {self.prog} --help)")
        raise SystemExit(2)


def whole_number(text: str, low: int = -MOST_WHOLE, high: int = MOST_WHOLE) -> int:
    """Parse a text as an integer between `low` and `high`, or raise argparse's error."""
    try:
        value = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, got {_shorten(text)!r}"
        ) from error
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"must lie in [{low}, {high}], got {_shorten(text)!r}")
    return value


def seed_number(text: str) -> int:
    """Parse a text as a seed, an integer from 0, or raise argparse's error."""
    return whole_number(text, low=0)


def _shorten(text: str) -> str:
    """Cut a text to at most 40 characters, for an error message."""
    return text if len(text) <= 40 else f"{text[:39]}…"


def option_of(name: str, kind: type) -> str:
    """Return the command-line option of a dataclass's named setting, such as `--n-auxiliary`."""
    return "--" + (settings_of(kind)[name].metadata["flag"] or name.replace("_", "-"))


def add_settings(parser: argparse._ActionsContainer, kind: type, *names: str) -> None:
    """Add an option for each setting of a dataclass, or for the named ones in that order."""
    hints = typing.get_type_hints(kind)
    for name in names or settings_of(kind):
        field = settings_of(kind)[name]
        is_required, default = field.default is MISSING, field.default
        usual = (
            ""
            if is_required or default in (None, (), "")
            else f" (default: {_format_default(default)})"
        )
        options = {
            "default": None if is_required else default,
            "required": is_required,
            "help": field.metadata["help"] + usual,
        }
        parser.add_argument(
            option_of(name, kind), **options | _option_type(hints[name], field.metadata)
        )


def _format_default(value: Any) -> str:
    """Return a setting's default as it is typed on the command line."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _option_type(hint: Any, meta: Any) -> dict[str, Any]:
    """Return `add_argument`'s keywords for a setting: its type, number of values and choices."""
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    shape: dict[str, Any] = {"choices": meta["choices"]} if meta["choices"] else {}
    if typing.get_origin(hint) is not tuple:
        return {"type": _value_parser(hint, meta), **shape}
    inner, *rest = typing.get_args(hint)
    if takes_pairs(hint):
        return {"action": "append", "default": [], "metavar": "NAME=VALUE"}
    n_words = "+" if rest == [Ellipsis] else 1 + len(rest)
    return {"type": _value_parser(inner, meta), "nargs": n_words, **shape}


def takes_pairs(hint: Any) -> bool:
    """Return whether a setting's type hint is a tuple of (name, value) pairs, as `--set` gives."""
    inner = typing.get_args(hint)[:1]
    return bool(inner) and typing.get_origin(inner[0]) is tuple


def _value_parser(hint: Any, meta: Any) -> Any:
    """Return a function that parses one value of a type hint, with range checks for integers."""
    (kind,) = (k for k in typing.get_args(hint) or (hint,) if k is not type(None))
    ends = {end: meta[end] for end in ("low", "high") if meta[end] is not None}
    return partial(whole_number, **ends) if kind is int and ends else kind


def settings_given(arguments: argparse.Namespace, kind: type) -> dict[str, Any]:
    """Read the values of a dataclass's settings from the parsed arguments; return them by name."""
    given = {}
    for name in settings_of(kind):
        option = option_of(name, kind).removeprefix("--").replace("-", "_")
        if option in arguments:
            value = getattr(arguments, option)
            given[name] = tuple(value) if isinstance(value, list) else value
    return given


def build_from_arguments(arguments: argparse.Namespace, kind: type, **others: Any) -> Any:
    """Build an instance of a settings class from parsed arguments, and check its settings.

    Raises
    ------
    InvalidInputError
        A setting is outside its range.
    """
    made = kind(**settings_given(arguments, kind) | others)
    validate_settings(made)
    return made


def add_encoder_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose an encoder."""
    add_settings(parser.add_argument_group("encoder"), EncoderSpec)


def encoder_spec(arguments: argparse.Namespace) -> EncoderSpec:
    """Return the spec of the encoder that the arguments choose."""
    return EncoderSpec(**settings_given(arguments, EncoderSpec))


def add_column_arguments(
    parser: argparse.ArgumentParser,
    *,
    label: str = "",
    title: str = "",
    default_label: str | None = None,
) -> None:
    """Add the options that name columns of a table of texts.

    Every command that reads a table has `--text-column`; `label` and `title` describe the
    further options `--label-column` and `--title-column`, which are added if not empty.
    """
    parser.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of the texts in a table, such as payload.text for a field of an object "
        "(default: the longest text column)",
    )
    if label:
        parser.add_argument(
            "--label-column", metavar="NAME", default=default_label, help=f"column {label}"
        )
    if title:
        parser.add_argument("--title-column", metavar="NAME", default="title", help=title)


def columns_of(
    arguments: argparse.Namespace, *, label: str | None = None, others: Sequence[str] = ()
) -> Columns:
    """Return the table columns that the arguments name, with label and others if given."""
    from leakscope.core.corpora.rows import Columns

    return Columns(text=arguments.text_column, label=label, others=tuple(others))


def add_attack_arguments(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add the options that choose an attack and its settings."""
    from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS

    group = parser.add_argument_group("attack")
    shown = f" (default: {default})" if default else ""
    group.add_argument(
        "--attack",
        default=default,
        required=default is None,
        help=f"one of {', '.join(INVERSION_ATTACKS)}{shown}",
    )
    add_set_argument(group, "a setting of the attack; `list --attack NAME` shows all of them")


def add_set_argument(parser: argparse._ActionsContainer, help: str) -> None:
    """Add the option `--set NAME=VALUE`, which `parse_settings` reads."""
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE", help=help
    )


def attack_spec(arguments: argparse.Namespace) -> AttackSpec:
    """Return the spec of the attack that the arguments choose, its settings parsed by type.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value of the wrong type.
    """
    from leakscope.core.attacks.inversion.registry import INVERSION_ATTACKS

    entry = INVERSION_ATTACKS.get(arguments.attack)
    if entry is None:
        known = ", ".join(INVERSION_ATTACKS)
        near = similar(arguments.attack, INVERSION_ATTACKS)
        raise InvalidInputError(f"--attack must be one of {known}, got {arguments.attack!r}.{near}")
    return AttackSpec.of(
        arguments.attack, parse_settings(arguments.attack, entry.kind, arguments.settings)
    )


def parse_settings(name: str, kind: type, pairs: Sequence[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` texts into a dictionary, by the types of a class's settings."""
    declared = settings_of(kind)
    hints = typing.get_type_hints(kind)
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise InvalidInputError(f"--set takes NAME=VALUE, got {pair!r}.")
        if key not in declared:
            known = ", ".join(declared) or "none"
            near = similar(key, declared)
            raise InvalidInputError(f"{name} has no setting {key!r}; it has {known}.{near}")
        settings[key] = read_value(f"--set {key}", hints[key], text)
    return settings


def read_value(name: str, hint: Any, text: str) -> Any:
    """Parse a text as a setting's type: bool, int, float, str, or None where allowed."""
    kinds = list(typing.get_args(hint)) if isinstance(hint, types.UnionType) else [hint]
    if type(None) in kinds and text.lower() == "none":
        return None
    for kind in kinds:
        if kind is bool and text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        if kind in (int, float, str):
            try:
                return kind(text)
            except ValueError:
                continue
    allowed = " or ".join(_TYPE_NAMES.get(kind, str(kind)) for kind in kinds)
    raise InvalidInputError(f"{name} must be {allowed}, got {text!r}.")


_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TYPE_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a word",
    type(None): "none",
}
