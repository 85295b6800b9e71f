"""How much memory a process may take for what others made: a visitor's file, a model as ONNX."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from core.protocols import OnProgress

try:
    import resource
except ImportError:  # Windows, which has no such bounds
    resource = None  # type: ignore[assignment]

__all__ = ["MOST_BYTES", "bounded_memory", "call", "reading"]

MOST_BYTES = 2 * 2**30
"""That reading one file may take. The largest upload, a table of 200 MB, takes less."""


@contextmanager
def bounded_memory(most: int = MOST_BYTES, held: int | None = None) -> Iterator[None]:
    """Let this process take so many bytes more than it holds; what needs more gets a MemoryError.

    For a process that serves nobody else meanwhile: the bound is on all of its threads. Linux
    keeps it; other systems may not.

    Parameters
    ----------
    held : int, optional
        Bytes that the process counts as holding: what it does now, by default.
    """
    if resource is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = (_held() if held is None else held) + most
    if soft != resource.RLIM_INFINITY:
        bound = min(bound, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@cache
def _held_at_first() -> int:
    """Return the bytes that count against the bound before this process reads its first file.

    Each reading leaves room that no other part of the process uses, up to all that it took: by what
    is held now, the next could fill that and take its own bound on top.
    """
    return _held()


def _held() -> int:
    """Return the bytes that count against the bound."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
        return int(pages) * resource.getpagesize()
    return 0


@contextmanager
def reading(most: int = MOST_BYTES) -> Iterator[None]:
    """Read a file in bounded memory, without looking for objects that refer to each other.

    What a file holds does not, and looking through it again and again takes most of the time
    where it is millions of lists.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        with bounded_memory(most, _held_at_first()):
            yield
    finally:
        if was_on:
            gc.enable()


def call(
    read: Callable[..., Any],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    on_progress: OnProgress,
) -> Any:
    """Return what a reader answers, within that bound: the work of a job."""
    with reading():
        return read(*arguments, **options)
