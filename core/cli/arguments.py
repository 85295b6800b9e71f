"""What the commands' arguments have in common, and how settings are read from `--set`."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Sequence
from typing import Any, NoReturn

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.output import show_error
from core.corpora.rows import Columns
from core.errors import InvalidInputError, similar
from core.specs import MOST_WHOLE, AttackSpec, EncoderSpec, settings_of

__all__ = [
    "Parser",
    "add_attack_arguments",
    "add_column_arguments",
    "add_encoder_arguments",
    "attack_spec",
    "columns_of",
    "encoder_spec",
    "parse_settings",
    "read_value",
    "seed_number",
    "whole_number",
]


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line on standard error."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})
        self.register("type", int, whole_number)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line and exit with status 2."""
        show_error(f"{message} (see {self.prog} --help)")
        raise SystemExit(2)


def whole_number(text: str, low: int = -MOST_WHOLE, high: int = MOST_WHOLE) -> int:
    """Read a whole number of a size that can be counted with."""
    try:
        value = int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {_cut(text)!r}") from error
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"must lie in [{low}, {high}], got {_cut(text)!r}")
    return value


def seed_number(text: str) -> int:
    """Read a seed: a whole number from 0."""
    return whole_number(text, low=0)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def add_encoder_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what chooses an encoder."""
    group = parser.add_argument_group("encoder")
    group.add_argument("--encoder", default="minilm", help="minilm, st:ID or mlm:ID")
    group.add_argument("--layer", type=int, help="hidden layer to pool, 0 being token vectors")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    group.add_argument("--precision", default="auto", help="auto, float32, bfloat16 or float16")
    group.add_argument("--backend", default="auto", help="auto, torch or openvino")


def encoder_spec(arguments: argparse.Namespace) -> EncoderSpec:
    """Return the encoder that the arguments choose."""
    return EncoderSpec(
        name=arguments.encoder,
        layer=arguments.layer,
        device=arguments.device,
        precision=arguments.precision,
        backend=arguments.backend,
    )


def add_column_arguments(
    parser: argparse.ArgumentParser,
    *,
    label: str = "",
    title: str = "",
    default_label: str | None = None,
) -> None:
    """Add what chooses the columns of a table of texts.

    Every command that reads one has `--text-column`; those that use labels or titles say for
    what, and so have `--label-column` and `--title-column`.
    """
    parser.add_argument(
        "--text-column",
        metavar="NAME",
        help="column of the texts in a table, payload.text for a field of an object "
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
    """Return the columns that the arguments choose, with a column of labels where one is used."""
    return Columns(text=arguments.text_column, label=label, others=tuple(others))


def add_attack_arguments(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add what chooses an attack and its settings."""
    group = parser.add_argument_group("attack")
    shown = f" (default: {default})" if default else ""
    group.add_argument(
        "--attack",
        default=default,
        required=default is None,
        help=f"one of {', '.join(INVERSION_ATTACKS)}{shown}",
    )
    group.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the attack; `list --attack NAME` shows them all",
    )


def attack_spec(arguments: argparse.Namespace) -> AttackSpec:
    """Return the attack that the arguments choose, with its settings in their types.

    Raises
    ------
    InvalidInputError
        No such attack or setting, or a value of another type.
    """
    entry = INVERSION_ATTACKS.get(arguments.attack)
    if entry is None:
        known = ", ".join(INVERSION_ATTACKS)
        near = similar(arguments.attack, INVERSION_ATTACKS)
        raise InvalidInputError(f"--attack must be one of {known}, got {arguments.attack!r}.{near}")
    return AttackSpec.of(
        arguments.attack, parse_settings(arguments.attack, entry.kind, arguments.settings)
    )


def parse_settings(name: str, kind: type, pairs: Sequence[str]) -> dict[str, Any]:
    """Read `NAME=VALUE` pairs by the declared types of the settings of an attack class."""
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
    """Read a value of type bool, int, float or str, or of a union of these with None."""
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
