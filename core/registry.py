"""Registry entries: metadata shown before a choice, and the class behind it.

An entry holds everything about a thing: its formula, its style in figures and its cost. Adding one
takes a file and an entry; everything else finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple, TypeVar

from leakscope.core.errors import InvalidInputError
from leakscope.core.specs import settings_of, validate_settings

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


def import_object(path: str) -> Any:
    """Import and return the object at "module:name"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Entry:
    """A thing that can be chosen by name: an attack, an encoder, a defence.

    Attributes
    ----------
    title : str
        Readable title.
    summary : str
        What it does, in one sentence.
    reference : str
        The publication that describes it.
    path : str
        module:Class, imported only when used: heavy libraries wait until then.
    formula : str
        What it computes, as LaTeX; may be empty.
    colour, symbol : str
        Style in every figure, in Plotly's names; `marker_style` assigns those left empty.
    version : int
        Raised when its code gives other results; earlier measurements are then repeated.
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
        """The class, or the factory function, imported on first use."""
        return import_object(self.path)

    @property
    def cost(self) -> str:
        """What using the entry takes, in words; empty unless a subclass overrides it."""
        return ""


class Look(NamedTuple):
    """Colour and symbol of a thing in figures."""

    colour: str
    symbol: str


AnEntry = TypeVar("AnEntry", bound=Entry)


def find(registry: Mapping[str, AnEntry], name: str, what: str) -> AnEntry:
    """Return a registry's entry by name, or raise InvalidInputError listing the known names.

    Raises
    ------
    InvalidInputError
        There is none; the message names those that there are.
    """
    entry = registry.get(name)
    if entry is None:
        raise InvalidInputError(f"{what} must be one of {', '.join(registry)}, got {name!r}.")
    return entry


class FilteredRegistry(Mapping[str, AnEntry]):
    """A live view of the registry entries that satisfy a predicate."""

    def __init__(self, whole: Mapping[str, Any], holds: Callable[[Any], bool]) -> None:
        self._whole, self._holds = whole, holds

    def __getitem__(self, name: str) -> AnEntry:
        """Return the entry of a name; raise KeyError if the view does not contain it."""
        entry: AnEntry = self._whole[name]
        if not self._holds(entry):
            raise KeyError(name)
        return entry

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the entries that satisfy the predicate."""
        return (name for name, entry in self._whole.items() if self._holds(entry))

    def __len__(self) -> int:
        """Return the number of entries that satisfy the predicate."""
        return sum(1 for _ in self)


def marker_styles(registry: Mapping[str, Entry]) -> dict[str, Look]:
    """Assign each entry of a registry a distinct colour and symbol; return them by name.

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


def marker_style(registry: Mapping[str, Entry], name: str) -> Look:
    """Return the colour and symbol in figures of one registry entry.

    Examples
    --------
    >>> entry = Entry("A", "One.", "a test", "leakscope.core.registry:Entry", colour="#0072B2")
    >>> marker_style(
    ...     {"a": entry, "b": Entry("B", "Another.", "a test", "leakscope.core.registry:Entry")},
    ...     "b",
    ... )
    Look(colour='#E69F00', symbol='square')
    """
    return marker_styles(registry)[name]


def name_of(registry: Mapping[str, Entry], kind: type[Any]) -> str | None:
    """Return the first name under which a class is registered; None if it is not."""
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
    """Instantiate a registry entry's class with settings and validate them.

    Parameters
    ----------
    name : str
        Name of the entry, for messages.
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
