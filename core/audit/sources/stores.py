"""What the readers of vector stores share: their libraries, and the choice among what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from core.audit.sources.protocol import refusal
from core.corpora.guess import longest_text_column
from core.errors import CoreError, MissingDependencyError, install


def library(module: str, what: str, *packages: str) -> Any:
    """Return the library that reads a store.

    Parameters
    ----------
    module : str
        To import.
    what : str
        What it reads, for the message.
    packages : str
        To install with it; the module's own package comes first.

    Raises
    ------
    MissingDependencyError
        It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        wanted = dict.fromkeys((_PACKAGES.get(module, module), *packages))
        raise MissingDependencyError(
            f"{what} are read by the library {module}: `{install(*wanted)}`."
        ) from error


_PACKAGES = {"milvus_lite": "milvus-lite"}


def chosen(
    label: str,
    asked: str,
    names: Sequence[str],
    what: str = "collection",
    form: str = "COLLECTION",
) -> str:
    """Return the collection that was asked for, or the only one.

    Parameters
    ----------
    what : str
        What `names` are, for messages.
    form : str
        The syntax after #.

    Raises
    ------
    InvalidInputError
        There is none, or no such one, or several and none was named.
    """
    if asked in names:
        return asked
    place = label.partition("#")[0]
    if not names:
        raise refusal(label, f"holds no {what}. Name a store that has one.")
    if asked:
        raise refusal(label, f"has no {what} {asked!r}; it has {', '.join(names)}.")
    if len(names) > 1:
        raise refusal(
            label, f"holds more than one {what}: {', '.join(names)}. Name one: {place}#{form}."
        )
    return names[0]


def text_field(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the field with the longest texts in the first rows; None where no field holds any."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return None
    return longest_text_column(names, ([row.get(name) for name in names] for row in rows))


@contextmanager
def unreadable(label: str) -> Iterator[None]:
    """Turn what a store's library raises into a message; what it quotes may hold texts."""
    try:
        yield
    except CoreError:
        raise
    except Exception as error:
        raise refusal(
            label,
            f"its library cannot read it ({type(error).__name__}). It may be damaged, or of "
            "another version: open it with the program that wrote it, and export its vectors as "
            "Parquet.",
        ) from error
