"""Entries of a registry: what a user should know of a thing before choosing it, and its class.

What belongs to a thing stands with the thing: its formula, its look in figures and what it costs
are told here, so that whoever adds one adds a file and an entry, and all else finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple, TypeVar

from core.errors import InvalidInputError
from core.specs import settings_of, validate_settings

__all__ = ["Entry", "Look", "Part", "find", "imported", "look_of", "looks_of", "make", "name_of"]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B5A900", "#7A5FA8")
"""Okabe–Ito, its yellow darkened for white paper, and a violet in the place of black."""

_SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "x",
    "pentagon",
    "hexagon",
    "star",
    "triangle-down",
    "hourglass",
    "bowtie",
)


def imported(path: str) -> Any:
    """Return what module:name stands for; the module is imported now, and not before."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


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
    formula : str
        What it computes, as LaTeX; empty where words say it.
    colour, symbol : str
        Its look in every figure, as Plotly names it; see `look_of` for what is left empty.
    version : int
        Raised where its code comes to find something else: what was measured before is then
        measured anew.
    """

    title: str
    summary: str
    reference: str
    path: str
    formula: str = field(default="", kw_only=True)
    colour: str = field(default="", kw_only=True)
    symbol: str = field(default="", kw_only=True)
    version: int = field(default=1, kw_only=True)

    @property
    def kind(self) -> Any:
        """The class, or the function that opens it."""
        return imported(self.path)

    @property
    def cost(self) -> str:
        """What it takes to use it, in words; each family says what that is."""
        return ""


class Look(NamedTuple):
    """How a thing is drawn."""

    colour: str
    symbol: str


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


class Part(Mapping[str, AnEntry]):
    """Those entries of a registry for which something holds, also of entries added later."""

    def __init__(self, whole: Mapping[str, Any], holds: Callable[[Any], bool]) -> None:
        self._whole, self._holds = whole, holds

    def __getitem__(self, name: str) -> AnEntry:
        entry: AnEntry = self._whole[name]
        if not self._holds(entry):
            raise KeyError(name)
        return entry

    def __iter__(self) -> Iterator[str]:
        return (name for name, entry in self._whole.items() if self._holds(entry))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def looks_of(registry: Mapping[str, Entry]) -> dict[str, Look]:
    """Return how each thing of a registry is drawn, no two of them alike.

    An entry that leaves its colour or symbol open gets, in the order of the registry, the first
    that no other entry has; when all are taken, the first pair of both that none has.
    """
    colours = {entry.colour for entry in registry.values()}
    symbols = {entry.symbol for entry in registry.values()}
    found = {n: Look(e.colour, e.symbol) for n, e in registry.items() if e.colour and e.symbol}
    for name, entry in registry.items():
        if name in found:
            continue
        free = [c for c in _COLOURS if c not in colours], [s for s in _SYMBOLS if s not in symbols]
        tried = (
            [entry.colour] if entry.colour else [*free[0], *_COLOURS],
            [entry.symbol] if entry.symbol else [*free[1], *_SYMBOLS],
        )
        pairs = (Look(colour, symbol) for symbol, colour in product(tried[1], tried[0]))
        look = next((p for p in pairs if p not in found.values()), Look(tried[0][0], tried[1][0]))
        found[name] = look
        colours.add(look.colour)
        symbols.add(look.symbol)
    return {name: found[name] for name in registry}


def look_of(registry: Mapping[str, Entry], name: str) -> Look:
    """Return how a thing is drawn: the same on every page.

    Examples
    --------
    >>> entry = Entry("A", "One.", "a test", "core.registry:Entry", colour="#0072B2")
    >>> look_of({"a": entry, "b": Entry("B", "Another.", "a test", "core.registry:Entry")}, "b")
    Look(colour='#E69F00', symbol='square')
    """
    return looks_of(registry)[name]


def name_of(registry: Mapping[str, Entry], kind: type[Any]) -> str | None:
    """Return the first name under which a class stands in a registry; None where it does not."""
    path = f"{kind.__module__}:{kind.__qualname__}"
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
