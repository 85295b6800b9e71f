"""Where derived data lies, and which folders there are ours to secure and to clear.

The folders of the cache have ordinary names, and LEAKSCOPE_HOME may name a folder that holds
somebody's own `studies`. So a folder is marked when it is made, or is found empty at the first
writing; what has no mark is written to and read, and else left alone. ~/.cache/leakscope needs no
mark: nobody keeps work of their own there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["CACHED", "MARKER", "NOWHERE", "NO_HOME", "ON_REQUEST", "cache_dir", "claim", "is_ours",
           "unmarked", "user_home"]  # fmt: skip

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
"""Hours of work: removed where they are asked for by name, never with the rest."""

MARKER = ".leakscope"
"""An empty file in a folder of the cache that is ours."""

_HOME = "LEAKSCOPE_HOME"

NO_HOME = "/nonexistent"
"""The home folder that systems give to users without one."""

NOWHERE = Path(os.devnull)
"""Below which no folder can be made: it is read as empty, and what has to be kept is refused."""


def cache_dir(*parts: str) -> Path:
    """Return a folder for derived data: $LEAKSCOPE_HOME, or ~/.cache/leakscope.

    It lies in `NOWHERE` where there is neither, as for a user of a container that its image does
    not know, or where it belongs to somebody else, who lets nobody in.
    """
    home = os.environ.get(_HOME)
    root = Path(home) if home else _usual()
    return (root if _is_open(root) else NOWHERE / "leakscope").joinpath(*parts)


def _usual() -> Path:
    return (user_home() or NOWHERE) / ".cache" / "leakscope"


def _is_open(folder: Path) -> bool:
    """Return whether a folder can be entered, or could be if it was there."""
    try:
        folder.stat()
    except PermissionError:  # one above it lets nobody in
        return False
    except OSError:
        return True
    return os.access(folder, os.X_OK)


def user_home() -> Path | None:
    """Return the home folder of the user; None where the system knows of none."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return None if home == Path(NO_HOME) else home


def claim(folder: Path) -> None:
    """Mark a folder of the cache that is empty yet; any other folder stays as it is.

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
    """Return whether all that lies in a folder of the cache was put there by this program."""
    folder = cache_dir(kind)
    if folder.is_relative_to(NOWHERE) or folder.is_symlink():
        return False
    is_default = not os.environ.get(_HOME) or cache_dir() == _usual()
    return is_default or (folder / MARKER).is_file()


def unmarked() -> list[Path]:
    """Return the folders that have the name of one of the cache's, and may be somebody's own."""
    folders = [cache_dir(kind) for kind in CACHED if not is_ours(kind)]
    return [folder for folder in folders if _is_filled(folder)]


def _is_filled(folder: Path) -> bool:
    with suppress(OSError):  # no folder, or not one that we may read
        return any(folder.iterdir())
    return False
