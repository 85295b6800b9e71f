"""An uploaded file held in memory, never written to disk."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import BinaryIO


@dataclass(frozen=True)
class MemoryFile:
    """The name and content of an uploaded file, with the interface of a `Path`."""

    name: str
    content: bytes = field(repr=False)

    def __str__(self) -> str:
        """Return the file's name, which messages use."""
        return self.name

    @property
    def suffix(self) -> str:
        """The file name's extension, with its dot."""
        return PurePath(self.name).suffix

    @property
    def stem(self) -> str:
        """The file name without its extension."""
        return PurePath(self.name).stem

    def open(self, mode: str = "rb") -> BinaryIO:
        """Open the content as a binary stream."""
        if mode != "rb":
            raise ValueError(f"An uploaded file can only be read as bytes, not opened as {mode!r}.")
        return io.BytesIO(self.content)

    def is_dir(self) -> bool:
        """Return False: it is a file."""
        return False

    def is_file(self) -> bool:
        """Return True: it is a file."""
        return True

    def exists(self) -> bool:
        """Return True: its content is in memory."""
        return True


File = Path | MemoryFile
"""Something that opens like a file: on disk, or in memory where it must not touch a disk."""
