"""A file that never touches a disk: what a visitor uploads."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import BinaryIO

__all__ = ["File", "MemoryFile"]


@dataclass(frozen=True)
class MemoryFile:
    """The name and the content of an uploaded file, read like a `Path`."""

    name: str
    content: bytes = field(repr=False)

    def __str__(self) -> str:
        """Return the name, which messages use."""
        return self.name

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return PurePath(self.name).suffix

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return PurePath(self.name).stem

    def open(self, mode: str = "rb") -> BinaryIO:
        """Return the content as a stream of bytes."""
        if mode != "rb":
            raise ValueError(
                f"An uploaded file can be read as bytes alone, not opened as {mode!r}."
            )
        return io.BytesIO(self.content)

    def is_dir(self) -> bool:
        """Return False: it is a file."""
        return False

    def is_file(self) -> bool:
        """Return True."""
        return True

    def exists(self) -> bool:
        """Return True."""
        return True


File = Path | MemoryFile
"""Something that opens like a file: on disk, or in memory where it must not touch a disk."""
