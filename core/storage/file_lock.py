"""An exclusive lock between processes, for results that several cells share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leakscope.core.storage.artifacts import storage_errors
from leakscope.core.storage.atomic_files import make_folder


@contextmanager
def exclusive_lock(place: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder within the block, while other processes wait."""
    with storage_errors(place):
        make_folder(place)
        lock = (place / ".lock").open("a")
    with lock:
        if os.name != "nt":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
