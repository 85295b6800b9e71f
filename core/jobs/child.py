"""The process of jobs, from within: one piece of work after another, until nobody has more.

Started by `core.jobs.worker`, never by hand.
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

from core.errors import StoppedError
from core.jobs.job import JobState
from core.jobs.messages import Ended, Ready, Stop, Told
from core.protocols import OnProgress

__all__ = ["main"]

_MOST_WARM_GIGABYTES = 2.5
"""A process that once held more is not kept for the next job."""


def main(pipe: int, lifeline: int, niceness: int) -> None:
    """Serve the process at the other end of `pipe`; end with it, when `lifeline` closes."""
    _end_with(lifeline)
    _give_way(niceness)
    connection = Connection(pipe)
    is_prepared = False
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while _serve(connection, is_prepared=is_prepared):
            is_prepared = True


def _end_with(lifeline: int) -> None:
    """Have the system end this process and its children when the other end of a pipe closes.

    By a signal (SIGIO), whose default is to end who gets it: a thread that waits for the end of
    the pipe would not run while work in C holds the interpreter, and the children would stay.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it closed before anybody listened
        sys.exit()


def _give_way(niceness: int) -> None:
    """Let the pages go first, and let the system take this process first where memory runs out."""
    os.nice(niceness)
    with contextlib.suppress(OSError):  # Linux has it alone
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def _serve(connection: Connection, *, is_prepared: bool) -> bool:
    """Do one piece of work, tell what came of it, and return whether to go on."""
    connection.send(Ready())
    ended = dataclasses.replace(_outcome(connection, is_prepared), is_warm=_can_go_on())
    try:
        connection.send(ended)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as fault:  # a result that no pipe can carry
        connection.send(dataclasses.replace(Ended.by(fault), is_warm=ended.is_warm))
    return ended.is_warm


def _outcome(connection: Connection, is_prepared: bool) -> Ended:
    try:
        task = connection.recv()
        while isinstance(task, Stop):  # for work that had just ended
            task = connection.recv()
    except (EOFError, ConnectionResetError):
        raise
    except BaseException as fault:  # a function that is not found here
        return Ended.by(fault)
    try:
        prepare, function, arguments = task
        if prepare is not None and not is_prepared:
            prepare()
        return Ended(state=JobState.DONE, result=function(*arguments, _reporter(connection)))
    except BaseException as fault:  # SystemExit included
        return Ended.by(fault)


def _reporter(connection: Connection) -> OnProgress:
    """Return an `on_progress` that tells the server, and stops the work where it asks to."""
    lock, must_stop = threading.Lock(), threading.Event()

    def report(fraction: float, message: str) -> None:
        with lock:
            connection.send(Told(min(max(fraction, 0.0), 1.0), message))
            if connection.poll() and isinstance(connection.recv(), Stop):
                must_stop.set()
        if must_stop.is_set():
            raise StoppedError("Stopped.")

    return report


def _can_go_on() -> bool:
    """Return whether this process can be used again: no child was left, nor much memory."""
    gc.collect()
    gc.freeze()  # libraries stay: going through them again takes half a second after each job
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return _peak_memory() < _MOST_WARM_GIGABYTES * 1e9
    return False


def _peak_memory() -> int:
    """Return the most bytes that this process ever held.

    Of `getrusage` Linux hands a program the peak of whoever started it, such as a server that has
    grown; /proc tells of the program alone.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
