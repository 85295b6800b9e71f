"""The worker process and one job in it: send it, follow its progress, end it if necessary."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import Pipe

from leakscope.core.jobs.job import Ended, Entry, JobState, Message, Progress, Ready, Stop

_NICENESS = 7
_REAP_SECONDS = 0.5


class Worker:
    """A job process, leader of a process group that is killed with it.

    Raises
    ------
    OSError
        The system has no room for another process.
    """

    def __init__(self) -> None:
        self._connection, there = Pipe()
        end, self._lifeline = os.pipe()
        arguments = map(str, (there.fileno(), end, _NICENESS))
        folders = os.pathsep.join(path for path in sys.path if path)
        try:
            self._process = subprocess.Popen(
                # -P: modules come from where this process has them, not from the current folder.
                [sys.executable, "-P", "-m", "leakscope.core.jobs.child", *arguments],
                env={**os.environ, "PYTHONPATH": folders},
                stdin=subprocess.DEVNULL,
                pass_fds=(there.fileno(), end),
                # A group to be ended as one; the session stays, since Linux may share the processor
                # by session first, and `nice` would then count only within it.
                process_group=0,
            )
        except OSError:
            self._close_pipes()
            raise
        finally:
            there.close()
            os.close(end)

    @property
    def pid(self) -> int:
        """The process id, which is also its group's."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        # Without `poll`, which would set the number free while children may still bear it.
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:  # somebody else has waited for it
            return False

    def listen(self, seconds: float) -> Message | None:
        """Wait for the process's next message and return it; None after a timeout.

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
        """Ask the running job to stop at its next progress report."""
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


_LOOK_EVERY = 0.05
_GRACE = 1.0
"""Seconds between asking a job to stop and killing its process."""

_NO_ROOM = "The computer cannot start another process. Close other programs and try again."
_KILLED = (
    "The computer ended the work, usually because memory ran out. Use fewer or shorter texts, or "
    "close other programs."
)
_CRASHED = "The work crashed ({}). Try again. If it crashes again, use fewer or shorter texts."
_EXITED = (
    "The work ended without a result (exit status {}). Try again, or use fewer or shorter texts."
)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Time limits of running jobs: abandoned, silent or too long.

    Parameters
    ----------
    abandon_seconds : float
        Nobody looked at it for so long.
    crowded_seconds : float
        The same while another job waits. Above a minute: a browser lets a page in a hidden tab
        look once a minute.
    silent_seconds : float
        It gave no sign of progress for so long while another job waits.
    longest_seconds, crowded_longest_seconds : float
        It ran for so long, whatever it did; and the same while another job waits.
    """

    abandon_seconds: float = 180.0
    crowded_seconds: float = 75.0
    silent_seconds: float = 600.0
    longest_seconds: float = 3600.0
    crowded_longest_seconds: float = 900.0

    def judge(self, entry: Entry, *, is_crowded: bool) -> Ended | None:
        """Return how a running job must be ended by the time limits; None if it may continue."""
        if entry.must_stop:
            return Ended(state=JobState.STOPPED)
        now = time.monotonic()
        longest = min(self.crowded_seconds, self.abandon_seconds)
        if now - entry.asked > (longest if is_crowded else self.abandon_seconds):
            return Ended(state=JobState.STOPPED)
        if is_crowded and now - entry.last_progress > self.silent_seconds:
            return Ended(
                state=JobState.FAILED,
                error=f"The work showed no progress for {self.silent_seconds:.0f} s while others "
                "waited, so it was stopped. Use fewer or shorter texts, or the command line.",
            )
        most = self.crowded_longest_seconds if is_crowded else self.longest_seconds
        if now - entry.started > most:
            where = " while others wait" if is_crowded else ""
            return Ended(
                state=JobState.FAILED,
                error=f"The work took more than {most / 60:.0f} minutes, the limit of one job"
                f"{where}, so it was stopped. Use fewer or shorter texts, or the command line.",
            )
        return None


def run(
    entry: Entry, worker: Worker | None, judge: Callable[[Entry], Ended | None]
) -> tuple[Worker | None, Ended]:
    """Run a queued job in a process; return that process (None if it has ended) and the outcome.

    The process is the one that is there, or a new one. None where it has ended.
    """
    verdict = judge(entry)
    if verdict is not None:  # it was left while it waited, and costs nobody the process
        return worker, verdict
    try:
        worker = _live_worker(worker)
    except OSError:
        return None, Ended(state=JobState.FAILED, error=_NO_ROOM)
    except Exception as fault:
        return None, Ended.from_exception(fault)
    try:
        ended = _follow(entry, worker, judge)
    except (EOFError, OSError):
        return None, _ended_by_exit(worker.end(), entry.kind)
    except Exception as fault:  # a result that cannot be read here
        ended = Ended.from_exception(fault)
    if not ended.is_warm:
        worker.end()
        worker = None
    return worker, ended


def _live_worker(worker: Worker | None) -> Worker:
    """Return the given worker if it is alive; else end it and start a new one."""
    if worker is not None:
        if worker.is_alive():
            return worker
        worker.end()
    return Worker()


def _follow(entry: Entry, worker: Worker, judge: Callable[[Entry], Ended | None]) -> Ended:
    """Send a job to the worker and follow its messages until it ends or must be ended."""
    is_handed_over, asked = False, 0.0
    verdict: Ended | None = None
    while True:
        message = worker.listen(_LOOK_EVERY)
        if isinstance(message, Ended):
            if verdict is None:
                return message
            # Asked to stop, it hands over its best result so far.
            is_stopped = message.state is verdict.state is JobState.STOPPED
            result = message.result if is_stopped else None
            return replace(verdict, result=result, is_warm=message.is_warm)
        if isinstance(message, Progress):
            entry.update_progress(message)
        verdict = verdict or judge(entry)
        if verdict is None:
            if isinstance(message, Ready):
                worker.send(entry.payload)
                entry.payload, is_handed_over = b"", True
        elif not is_handed_over or (asked and time.monotonic() - asked > _GRACE):
            return verdict
        elif not asked:
            asked = time.monotonic()
            worker.ask_to_stop()


def _ended_by_exit(status: int, kind: str) -> Ended:
    """Return the failure of a job whose process died, with a message for its exit status."""
    if status == -signal.SIGKILL:
        how, error = "was killed", _KILLED
    elif status < 0:
        name = signal.Signals(-status).name
        how, error = f"crashed ({name})", _CRASHED.format(name)
    else:
        how, error = f"exited with {status}", _EXITED.format(status)
    return Ended(state=JobState.FAILED, error=error, place=f"The process of a job {how}: {kind}")
