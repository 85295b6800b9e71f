"""Bound the memory that reading an untrusted file may take."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from leakscope.core.protocols import OnProgress

try:
    import resource
except ImportError:  # Windows, which has no such bounds
    resource = None  # type: ignore[assignment]

MOST_BYTES = 2 * 2**30
"""Memory that reading one file may take. The largest upload, a table of 200 MB, takes less."""


@contextmanager
def bounded_memory(most: int = MOST_BYTES, held: int | None = None) -> Iterator[None]:
    """Limit, within the block, the memory this process may allocate; above it, MemoryError.

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
    bound = (_used_memory() if held is None else held) + most
    if soft != resource.RLIM_INFINITY:
        bound = min(bound, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@cache
def _initial_memory() -> int:
    """Return the process's data memory in bytes, as measured at this function's first call.

    Each reading leaves room that no other part of the process uses, up to all that it took: by what
    is held now, the next could fill that and take its own bound on top.
    """
    return _used_memory()


def _used_memory() -> int:
    """Return the process's data memory in bytes, as counted against RLIMIT_DATA."""
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
        return int(pages) * resource.getpagesize()
    return 0


@contextmanager
def reading(most: int = MOST_BYTES) -> Iterator[None]:
    """Within the block, bound this process's memory and turn the garbage collector off.

    What a file holds does not, and looking through it again and again takes most of the time
    where it is millions of lists.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        with bounded_memory(most, _initial_memory()):
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
    """Call a reader function in bounded memory and return its result; entry point of its job."""
    with reading():
        return read(*arguments, **options)
