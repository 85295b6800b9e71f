"""Processes of tests, none of which outlives its test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any


@contextlib.contextmanager
def started(
    command: Sequence[object], *, output: Any = subprocess.DEVNULL, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a command in a session of its own, and end all of it at the end.

    Its output goes to `output`: one that had ours would keep whoever reads ours waiting.
    """
    process = subprocess.Popen(
        list(map(str, command)), stdout=output, stderr=output, start_new_session=True, **options
    )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that leads its session, and whatever of it is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
