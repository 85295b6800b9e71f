"""Main program of the job process: runs one job after another.

Started by `leakscope.core.jobs.running`, never by hand.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import gc
import os
import resource
import select
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from leakscope.core.errors import StoppedError
from leakscope.core.jobs.job import Ended, JobState, Progress, Ready, Stop
from leakscope.core.protocols import OnProgress

_MOST_WARM_GIGABYTES = 2.5
"""Peak memory above which a process is not reused for the next job."""


def main(pipe: int, lifeline: int, niceness: int) -> None:
    """Run jobs received through the pipe until it closes; die when `lifeline` closes."""
    _die_with(lifeline)
    _lower_priority(niceness)
    connection = Connection(pipe)
    is_prepared = False
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while _serve(connection, is_prepared=is_prepared):
            is_prepared = True


def _die_with(lifeline: int) -> None:
    """Have the system kill this process and its children when the far end of a pipe closes.

    By a signal (SIGIO), whose default is to end who gets it: a thread that waits for the end of
    the pipe would not run while work in C holds the interpreter, and the children would stay.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it closed before anybody listened
        sys.exit()


def _lower_priority(niceness: int) -> None:
    """Lower this process's priority, and make it the first to be killed when memory runs out."""
    os.nice(niceness)
    with contextlib.suppress(OSError):  # Linux has it alone
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def _serve(connection: Connection, *, is_prepared: bool) -> bool:
    """Receive and run one job, send how it ended, and return whether to accept another."""
    connection.send(Ready())
    ended = dataclasses.replace(_run_one(connection, is_prepared), is_warm=_is_reusable())
    try:
        connection.send(ended)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as fault:  # a result that no pipe can carry
        connection.send(dataclasses.replace(Ended.from_exception(fault), is_warm=ended.is_warm))
    return ended.is_warm


def _run_one(connection: Connection, is_prepared: bool) -> Ended:
    """Receive a job, run it and return how it ended, with its result or error."""
    try:
        task = connection.recv()
        while isinstance(task, Stop):  # for work that had just ended
            task = connection.recv()
    except (EOFError, ConnectionResetError):
        raise
    except BaseException as fault:  # a function that is not found here
        return Ended.from_exception(fault)
    try:
        prepare, function, arguments = task
        if prepare is not None and not is_prepared:
            prepare()
        return Ended(state=JobState.DONE, result=function(*arguments, _reporter(connection)))
    except BaseException as fault:  # SystemExit included
        return Ended.from_exception(fault)


def _reporter(connection: Connection) -> OnProgress:
    """Return a progress callback that sends progress to the server, and raises once stopped."""
    lock, must_stop = threading.Lock(), threading.Event()

    def report(fraction: float, message: str) -> None:
        """Send the progress to the server; raise StoppedError if it has asked to stop."""
        with lock:
            connection.send(Progress(min(max(fraction, 0.0), 1.0), message))
            if connection.poll() and isinstance(connection.recv(), Stop):
                must_stop.set()
        if must_stop.is_set():
            raise StoppedError("Stopped.")

    return report


def _is_reusable() -> bool:
    """Return whether this process can be reused: no child left, and not too much memory."""
    gc.collect()
    gc.freeze()  # libraries stay: going through them again takes half a second after each job
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return peak_memory() < _MOST_WARM_GIGABYTES * 1e9
    return False


def peak_memory() -> int:
    """Return the peak memory of this process so far, in bytes.

    On Linux `getrusage` starts at the peak of the parent process, such as a server that has grown;
    /proc counts only this process.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
