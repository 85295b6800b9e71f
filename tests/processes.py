"""Processes of tests, none of which outlives its test."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
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


def wait_until(
    condition: Callable[[], bool],
    process: subprocess.Popen[Any] | None = None,
    *,
    seconds: float = 60.0,
) -> None:
    """Wait for what takes less, however busy the machine is; a process must run meanwhile."""
    end_of_patience = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < end_of_patience
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Return whether a process runs: one that is dead and not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the second where it ends while it is read
        return False
    return state != "Z"
