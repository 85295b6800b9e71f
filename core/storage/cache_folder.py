"""Location of the cache, and which of its folders are ours to secure and to clear.

The folders of the cache have ordinary names, and LEAKSCOPE_HOME may name a folder that holds
somebody's own `studies`. So a folder is marked when it is made, or is found empty at the first
writing; what has no mark is written to and read, and else left alone. ~/.cache/leakscope needs no
mark: nobody keeps work of their own there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CACHED = {
    "embeddings": "vectors of the texts of corpora",
    "layouts": "maps of such vectors",
    "representations": "encoders and attacks that the page of representations fitted",
    "deniability": "statistics of the tokens of encoders",
    "backends": "which library encodes faster here",
    "compiled": "machine code",
    "studies": "finished cells of studies and searches",
}
"""The folders of the cache, and what they hold."""

ON_REQUEST = ("studies",)
"""Kinds that take hours to compute: removed only if named explicitly."""

MARKER = ".leakscope"
"""Name of the empty file that marks a cache folder as ours."""

_HOME = "LEAKSCOPE_HOME"

NO_HOME = "/nonexistent"
"""Home folder that systems assign to users without one."""

NOWHERE = Path(os.devnull)
"""A path below which no folder can be created: reads find nothing, and writes fail."""


def cache_dir(*parts: str) -> Path:
    """Return the path of a folder of the cache, below $LEAKSCOPE_HOME or ~/.cache/leakscope.

    It lies in `NOWHERE` where there is neither, as for a user of a container that its image does
    not know, or where it belongs to somebody else, who lets nobody in.
    """
    home = os.environ.get(_HOME)
    root = Path(home) if home else _default_root()
    return (root if _is_open(root) else NOWHERE / "leakscope").joinpath(*parts)


def _default_root() -> Path:
    """Return the path ~/.cache/leakscope; one below `NOWHERE` if there is no home folder."""
    return (user_home() or NOWHERE) / ".cache" / "leakscope"


def _is_open(folder: Path) -> bool:
    """Return whether a folder can be entered, or could be if it existed."""
    try:
        folder.stat()
    except PermissionError:  # one above it lets nobody in
        return False
    except OSError:
        return True
    return os.access(folder, os.X_OK)


def user_home() -> Path | None:
    """Return the path of the user's home folder; None if there is none."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return None if home == Path(NO_HOME) else home


def mark_folder(folder: Path) -> None:
    """Put our marker file into a folder if it is an empty folder of the cache.

    Raises
    ------
    OSError
        It cannot be read or written.
    """
    if folder.name not in CACHED or folder.parent.absolute() != cache_dir().absolute():
        return
    if not any(folder.iterdir()):
        (folder / MARKER).touch(mode=0o600)


def is_ours(kind: str) -> bool:
    """Return whether a kind's cache folder is the default one or has our marker file."""
    folder = cache_dir(kind)
    if folder.is_relative_to(NOWHERE) or folder.is_symlink():
        return False
    is_default = not os.environ.get(_HOME) or cache_dir() == _default_root()
    return is_default or (folder / MARKER).is_file()


def unmarked_folders() -> list[Path]:
    """Return non-empty folders with a cache folder's name that may hold the user's own files."""
    folders = [cache_dir(kind) for kind in CACHED if not is_ours(kind)]
    return [folder for folder in folders if _is_filled(folder)]


def _is_filled(folder: Path) -> bool:
    """Return whether a folder has any content that can be listed."""
    with suppress(OSError):  # no folder, or not one that we may read
        return any(folder.iterdir())
    return False
