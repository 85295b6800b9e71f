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

__all__ = ["CACHED", "MARKER", "ON_REQUEST", "cache_dir", "claim", "is_ours", "unmarked"]

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


def cache_dir(*parts: str) -> Path:
    """Return a folder for derived data: $LEAKSCOPE_HOME, or ~/.cache/leakscope."""
    home = os.environ.get(_HOME)
    root = Path(home) if home else Path.home() / ".cache" / "leakscope"
    return root.joinpath(*parts)


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
    if folder.is_symlink():
        return False
    is_default = not os.environ.get(_HOME) or cache_dir() == Path("~/.cache/leakscope").expanduser()
    return is_default or (folder / MARKER).is_file()


def unmarked() -> list[Path]:
    """Return the folders that have the name of one of the cache's, and may be somebody's own."""
    folders = [cache_dir(kind) for kind in CACHED if not is_ours(kind)]
    return [folder for folder in folders if _is_filled(folder)]


def _is_filled(folder: Path) -> bool:
    with suppress(OSError):  # no folder, or not one that we may read
        return any(folder.iterdir())
    return False
