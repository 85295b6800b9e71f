"""Start, end and wait for processes in tests; none outlives its test."""

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
def running_process(
    command: Sequence[object], *, output: Any = subprocess.DEVNULL, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a command in a new process session, and kill the whole session at the end.

    Its output goes to `output`: if it inherited ours, readers of ours would wait for it.
    """
    process = subprocess.Popen(
        list(map(str, command)), stdout=output, stderr=output, start_new_session=True, **options
    )
    try:
        yield process
    finally:
        kill_session(process)


def kill_session(process: subprocess.Popen[Any]) -> None:
    """Kill a process that leads its session, with all processes of the session."""
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
    """Wait until a condition holds, at most some seconds; a given process must stay alive."""
    end_of_patience = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < end_of_patience
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends during the read
        return False
    return state != "Z"
