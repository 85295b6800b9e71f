"""The defences of the trade-off study: every one, at the strengths that are measured."""

from __future__ import annotations

import typing
from collections.abc import Sequence

from core.defences.registry import DEFENCES, make_defence
from core.errors import InvalidInputError, similar
from core.specs import DefenceSpec, settings_of

__all__ = ["GRID", "chosen_defences"]

GRID: tuple[DefenceSpec, ...] = (
    DefenceSpec(name="none"),
    *(DefenceSpec.of("text_to_text", {"eta": e}) for e in (60.0, 75.0, 90.0, 120.0)),
    *(DefenceSpec.of("token_representation", {"eta": e}) for e in (120.0, 240.0, 480.0)),
    *(DefenceSpec.of("sequence_representation", {"eta": e}) for e in (200.0, 400.0, 800.0)),
    *(DefenceSpec.of("gaussian", {"sigma": s}) for s in (0.02, 0.05, 0.1)),
    DefenceSpec.of("rounding", {"decimals": 1}),
    DefenceSpec(name="int8"),
    DefenceSpec(name="binary"),
    *(DefenceSpec.of("truncation", {"dimension": d}) for d in (192, 96, 48)),
    *(DefenceSpec.of("random_projection", {"dimension": d}) for d in (192, 96, 48)),
)
"""Every defence, at strengths from hardly felt to hardly useful, for vectors of length 1."""


def chosen_defences(told: Sequence[str]) -> list[DefenceSpec]:
    """Return the defences that words name, each once.

    Parameters
    ----------
    told : sequence of str
        `gaussian` for all its strengths in GRID, `gaussian:sigma=0.3` for one of one's own.

    Raises
    ------
    InvalidInputError
        No such defence or setting, or a value outside its range.

    Examples
    --------
    >>> [dict(spec.settings) for spec in chosen_defences(["rounding", "rounding:decimals=3"])]
    [{'decimals': 1}, {'decimals': 3}]
    """
    found: dict[DefenceSpec, None] = {}
    for each in told:
        name, has_settings, settings = each.partition(":")
        if name not in DEFENCES:
            raise InvalidInputError(
                f"--defences must be of {', '.join(DEFENCES)}, got {name!r}."
                + similar(name, DEFENCES)
            )
        in_grid = [spec for spec in GRID if spec.name == name] or [DefenceSpec(name=name)]
        specs = [_own(name, settings)] if has_settings else in_grid
        found.update(dict.fromkeys(specs))
    return list(found)


def _own(name: str, settings: str) -> DefenceSpec:
    """Read `NAME=VALUE,NAME=VALUE` by the types that the defence declares."""
    kind = DEFENCES[name].kind
    hints, known = typing.get_type_hints(kind), settings_of(kind)
    read = {}
    for pair in settings.split(","):
        setting, _, text = pair.partition("=")
        try:
            read[setting] = hints[setting](text) if setting in known else text
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"--defences: {setting} of {name} must be a number, got {text!r}."
            ) from error
    spec = DefenceSpec.of(name, read)
    make_defence(spec)  # says what is wrong
    return spec
