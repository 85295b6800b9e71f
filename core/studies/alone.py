"""What cells of several processes share is made by one of them; the others wait, and read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.durable import make_folder
from core.store import storage_errors

__all__ = ["alone"]


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Let no other process of this machine make the same: it waits, and then reads what is kept."""
    with storage_errors(place):
        make_folder(place)
        lock = (place / ".lock").open("a")
    with lock:
        if os.name != "nt":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
