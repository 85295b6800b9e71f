"""Shared helpers of the vector-store sources: libraries, collection names, copies, errors."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from leakscope.core.audit.sources.protocol import refusal
from leakscope.core.corpora.guess import longest_text_column
from leakscope.core.errors import CoreError, MissingDependencyError, install


def library(module: str, what: str, *packages: str) -> Any:
    """Import the library that reads a store; raise MissingDependencyError if it is missing.

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
            f"Reading {what} needs the library {module}: `{install(*wanted)}`."
        ) from error


_PACKAGES = {"milvus_lite": "milvus-lite"}


def choose_collection(
    label: str,
    asked: str,
    names: Sequence[str],
    what: str = "collection",
    form: str = "COLLECTION",
) -> str:
    """Return the requested name, or the only one; raise InvalidInputError if neither exists.

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
        raise refusal(label, f"contains no {what}. Name a store that has one.")
    if asked:
        raise refusal(label, f"has no {what} {asked!r}; it has {', '.join(names)}.")
    if len(names) > 1:
        raise refusal(
            label, f"contains several: {', '.join(names)}. Name one {what}: {place}#{form}."
        )
    return names[0]


def text_field(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of the field with the longest texts in rows; None if none has text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return None
    return longest_text_column(names, ([row.get(name) for name in names] for row in rows))


@contextmanager
def store_errors(label: str) -> Iterator[None]:
    """Turn errors of a store's library within the block into InvalidInputError without texts."""
    try:
        yield
    except CoreError:
        raise
    except Exception as error:
        raise refusal(
            label,
            f"its library cannot read it ({type(error).__name__}). It may be damaged or of another "
            "version. Open it with the program that wrote it, and export its vectors as Parquet.",
        ) from error


@contextmanager
def temporary_copy(label: str, path: Path) -> Iterator[Path]:
    """Copy a store's file or folder to a temporary folder and yield the copy's path.

    The copy is private to this user. Links are not followed out of the store.

    Raises
    ------
    InvalidInputError
        There is no such store, it changed while it was copied, or the disk has no room for it.
    """
    if not path.exists():
        raise refusal(label, "does not exist. Check the path.")
    if link := next((file for file in path.rglob("*") if file.is_symlink()), None):
        raise refusal(
            label,
            f"contains a link ({link.name}), through which the original store could be changed. "
            "Copy the store without links, as with `cp -rL`, and audit the copy.",
        )
    before = _read_state(path)
    size = sum(n for _, n, _ in before)
    with tempfile.TemporaryDirectory(prefix="leakscope-audit-") as folder:
        free = shutil.disk_usage(folder).free
        if size > 0.9 * free:
            raise refusal(
                label,
                f"must be copied before it is read, but its {size / 1e9:,.1f} GB do not fit into "
                f"{folder}, which has {free / 1e9:,.1f} GB left. Set TMPDIR to a larger disk.",
            )
        target = Path(folder, path.name)
        try:
            if path.is_dir():
                shutil.copytree(path, target, symlinks=True)
            else:
                shutil.copyfile(path, target)
        except (OSError, shutil.Error) as error:
            reason = error.strerror or "files vanished"
            raise refusal(
                label, f"could not be copied ({reason}). Stop writes to it and try again."
            ) from error
        if _read_state(path) != before:
            raise refusal(
                label,
                "changed while it was copied, so the copy mixes two states. Stop writes to it, or "
                "audit a backup.",
            )
        yield target


def _read_state(path: Path) -> list[tuple[str, int, int]]:
    """Return the path, size and modification time of every file of a store."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            facts = file.lstat()
        except FileNotFoundError:  # removed meanwhile: the two states differ
            continue
        if not file.is_dir():
            found.append((str(file), facts.st_size, facts.st_mtime_ns))
    return found
