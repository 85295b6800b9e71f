"""Handle of the job process, on the server's side."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from multiprocessing import Pipe

from leakscope.core.jobs.messages import Message, Stop

_NICENESS = 7
_REAP_SECONDS = 0.5


class Worker:
    """A job process, leader of a process group that is killed with it.

    Raises
    ------
    OSError
        The system has no room for another process.
    """

    def __init__(self, niceness: int = _NICENESS) -> None:
        self._connection, there = Pipe()
        end, self._lifeline = os.pipe()
        try:
            self._process = _start(there.fileno(), end, niceness)
        except OSError:
            self._close_pipes()
            raise
        finally:
            there.close()
            os.close(end)

    @property
    def pid(self) -> int:
        """Process id, which is also its group's."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        # Without `poll`, which would set the number free while children may still bear it.
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # somebody else has waited for it
            return False

    def listen(self, seconds: float) -> Message | None:
        """Return the next message of the process, or None after a timeout.

        Raises
        ------
        EOFError, OSError
            The process has ended.
        """
        if not self._connection.poll(seconds):
            return None
        message: Message = self._connection.recv()
        return message

    def send(self, payload: bytes) -> None:
        """Send a pickled job to a process that is ready."""
        self._connection.send_bytes(payload)

    def ask_to_stop(self) -> None:
        """Ask the job to stop at its next progress report."""
        with contextlib.suppress(OSError):
            self._connection.send(Stop())

    def end(self) -> int:
        """Kill the process and its children; return its exit status.

        One that ended by itself keeps its own status.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Before `wait`, which would set the group's number free for others.
            os.killpg(self.pid, signal.SIGKILL)
        self._close_pipes()
        try:
            return self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:  # in the hands of a disk or a driver: it ends after that
            return -signal.SIGKILL

    def _close_pipes(self) -> None:
        """Close the connection and the lifeline."""
        self._connection.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1


def _start(pipe: int, lifeline: int, niceness: int) -> subprocess.Popen[bytes]:
    """Start the job process in a fresh interpreter."""
    arguments = map(str, (pipe, lifeline, niceness))
    return subprocess.Popen(
        # -P: modules come from where this process has them, not from the current folder.
        [sys.executable, "-P", "-m", "leakscope.core.jobs.child", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        pass_fds=(pipe, lifeline),
        # A group to be ended as one; the session stays, since Linux may share the processor by
        # session first, and `nice` would then count only within it.
        process_group=0,
    )
