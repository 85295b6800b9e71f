"""The properties of an uploaded file, cached in the session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from leakscope.dashboard.server.reader_processes import run_reader
from leakscope.dashboard.ui.session_results import SessionCache

if TYPE_CHECKING:
    from leakscope.core.corpora.guess import FileFacts
    from leakscope.core.corpora.readers.memory_file import MemoryFile

_FACTS: SessionCache[tuple[str, str], FileFacts] = SessionCache("_own_facts", 3)


def upload_facts(file: MemoryFile, digest: str) -> FileFacts:
    """Inspect an upload's columns and properties in another process, cached per file."""
    from leakscope.core.corpora.uploads import inspect_upload

    return _FACTS.once((file.name, digest), partial(run_reader, inspect_upload, file))
