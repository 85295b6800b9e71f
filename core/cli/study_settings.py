"""What `study` is told of attacks and their settings, checked before hours are spent on it."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from core.attacks.inversion.registry import INVERSION_ATTACKS
from core.cli.arguments import read_value
from core.errors import InvalidInputError, similar
from core.specs import settings_of

__all__ = ["checked_attacks", "typed_settings"]


def checked_attacks(given: Sequence[str] | None, usual: Sequence[str]) -> tuple[str, ...]:
    """Return the attacks given, or the study's usual ones.

    Raises
    ------
    InvalidInputError
        No attack of such a name.
    """
    attacks = tuple(given or usual)
    for name in attacks:
        if name not in INVERSION_ATTACKS:
            raise InvalidInputError(
                f"--attacks must be of {', '.join(INVERSION_ATTACKS)}, got {name!r}."
                + similar(name, INVERSION_ATTACKS)
            )
    return attacks


def typed_settings(pairs: Sequence[str], attacks: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """Read `NAME=VALUE` pairs by the types that the attacks of a study declare.

    Raises
    ------
    InvalidInputError
        Not NAME=VALUE, a value of another type, or a setting that none of the attacks has.
    """
    return tuple(_read(pair, attacks) for pair in pairs)


def _read(pair: str, attacks: Sequence[str]) -> tuple[str, Any]:
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
