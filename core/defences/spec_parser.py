"""Parse defences from the command line: `gaussian:sigma=0.3`, `text_to_text:eta=60+int8`."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import Any

from leakscope.core.defences.entries import ChainEntry, DefenceEntry, settings_by_stage
from leakscope.core.defences.registry import DEFENCES, entry_of
from leakscope.core.defences.trained.registry import TRAINED_DEFENCES
from leakscope.core.errors import InvalidInputError, similar
from leakscope.core.registry import make
from leakscope.core.specs import DefenceSpec, settings_of

_JOINT = re.compile(r"\+(?=[A-Za-z_])")
"""A plus before a name, unlike the plus in 1e+3."""


def read_defence(
    argument: str, *, option: str = "--defence", known: Mapping[str, DefenceEntry] = DEFENCES
) -> DefenceSpec:
    """Parse a command-line string into the DefenceSpec of a defence or a chain.

    Parameters
    ----------
    known : mapping
        Those that may be named: by default those that need no training.

    Raises
    ------
    InvalidInputError
        No such defence or setting, a value outside its range, or stages that cannot follow each
        other; the message names the remedy.

    Examples
    --------
    >>> read_defence("text_to_text:eta=60+int8")
    DefenceSpec(name='text_to_text+int8', settings=(('text_to_text.eta', 60.0),))
    """
    parts = [part.partition(":") for part in _JOINT.split(argument)]
    names = [name for name, _, _ in parts]
    for name in names:
        _check_known(name, known, option)
    chain = "+".join(names)
    entry = entry_of(chain)  # says which cannot follow which
    settings: dict[str, Any] = {}
    for name, colon, settings_text in parts:
        own = _parse_settings(known[name], name, settings_text, option) if colon else {}
        settings |= own if len(parts) == 1 else {f"{name}.{key}": v for key, v in own.items()}
    spec = DefenceSpec.of(chain, settings)
    of_stages = settings_by_stage(entry, settings) if isinstance(entry, ChainEntry) else None
    for name, own in (of_stages or {chain: settings}).items():
        make(known[name], name, own)  # says what is wrong
    return spec


def _check_known(name: str, known: Mapping[str, DefenceEntry], option: str) -> None:
    """Raise InvalidInputError unless a defence is in `known`; say how to train it if needed."""
    if name in known:
        return
    if name in TRAINED_DEFENCES:
        raise InvalidInputError(
            f"{option}: {name} has to be trained. Run `defend --defence {name} --out FOLDER`, then "
            "use --encoder defended:FOLDER. Name only later stages as the defence."
        )
    raise InvalidInputError(
        f"{option} must be among {', '.join(known)}, got {name!r}." + similar(name, known)
    )


def _parse_settings(
    entry: DefenceEntry, name: str, settings_text: str, option: str
) -> Mapping[str, Any]:
    """Parse `NAME=VALUE,NAME=VALUE` into settings of the types that the defence declares."""
    kind = entry.kind
    hints, known = typing.get_type_hints(kind), settings_of(kind)
    read = {}
    for pair in settings_text.split(","):
        setting, equals, text = pair.partition("=")
        if not equals:
            raise InvalidInputError(f"{option}: {name} takes SETTING=VALUE, got {pair!r}.")
        if setting not in known:
            raise InvalidInputError(
                f"{option}: {name} has no setting {setting!r}; it has "
                f"{', '.join(known) or 'none'}.{similar(setting, known)}"
            )
        try:
            read[setting] = hints[setting](text)
        except (TypeError, ValueError) as error:
            kind_text = "a whole number" if hints[setting] is int else "a number"
            raise InvalidInputError(
                f"{option}: {setting} of {name} must be {kind_text}, got {text!r}."
            ) from error
    return read
