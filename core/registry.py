"""Entries of a registry: what a user should know of a thing before choosing it, and its class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from core.errors import InvalidInputError
from core.specs import settings_of, validate_settings

__all__ = ["Entry", "find", "make", "name_of"]


@dataclass(frozen=True)
class Entry:
    """A thing that can be chosen by name: an attack, an encoder, a defence.

    Attributes
    ----------
    title : str
        As people read it.
    summary : str
        What it does, in one sentence.
    reference : str
        Where it is described.
    path : str
        module:Class, imported only when used: heavy libraries wait until then.
    """

    title: str
    summary: str
    reference: str
    path: str

    @property
    def kind(self) -> type[Any]:
        """The class."""
        module, _, name = self.path.partition(":")
        loaded: type[Any] = getattr(import_module(module), name)
        return loaded


AnEntry = TypeVar("AnEntry", bound=Entry)


def find(registry: Mapping[str, AnEntry], name: str, what: str) -> AnEntry:
    """Return the entry of a name.

    Raises
    ------
    InvalidInputError
        There is none; the message names those that there are.
    """
    entry = registry.get(name)
    if entry is None:
        raise InvalidInputError(f"{what} must be one of {', '.join(registry)}, got {name!r}.")
    return entry


def name_of(registry: Mapping[str, Entry], kind: type[Any]) -> str | None:
    """Return the first name under which a class stands in a registry; None where it does not."""
    path = f"{kind.__module__}:{kind.__name__}"
    return next((name for name, entry in registry.items() if entry.path == path), None)


def make(
    entry: Entry,
    name: str,
    settings: Mapping[str, Any],
    *,
    also: Collection[str] = (),
    fixed: Mapping[str, Any] | None = None,
) -> Any:
    """Build the thing of an entry with settings, and check them.

    Parameters
    ----------
    name : str
        Under which the entry stands, for messages.
    settings : mapping of str to value
        By name; what is left out keeps its default.
    also : collection of str
        What the class takes beside its declared settings.
    fixed : mapping of str to value, optional
        What makes this entry what it is; cannot be set.

    Raises
    ------
    InvalidInputError
        No such setting, or a value outside its range; the message names what is.
    """
    fixed = fixed or {}
    known = [s for s in (*settings_of(entry.kind), *also) if s not in fixed]
    for setting in settings:
        if setting not in known:
            raise InvalidInputError(
                f"{name} has no setting {setting!r}; it has {', '.join(known) or 'none'}."
            )
    try:
        made = entry.kind(**fixed, **settings)
    except TypeError as error:
        raise InvalidInputError(f"{name}: {error}.") from error
    validate_settings(made)
    return made
