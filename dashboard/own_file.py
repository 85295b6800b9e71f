"""What a file of the visitor's own holds, looked up once for their session alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dashboard.apart import parsed
from dashboard.kept import Kept

if TYPE_CHECKING:
    from core.corpora.guess import FileFacts
    from core.corpora.memory_file import MemoryFile

__all__ = ["own_facts"]

_FACTS: Kept[tuple[str, str], FileFacts] = Kept("_own_facts", 3)


def own_facts(file: MemoryFile, digest: str) -> FileFacts:
    """Return what an upload holds, looked up once while the file stays."""
    from core.corpora.uploads import upload_facts

    return _FACTS.once((file.name, digest), partial(parsed, upload_facts, file))
