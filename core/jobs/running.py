"""Run one job in the worker process: send it, follow its progress, and end it if necessary."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from leakscope.core.jobs.entry import Entry
from leakscope.core.jobs.job import JobState
from leakscope.core.jobs.messages import Ended, Progress, Ready
from leakscope.core.jobs.worker import Worker

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
        """Return how a job must be ended, or None if it may continue."""
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
    """Run a job to its end; return its worker process (None if it ended) and the outcome.

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
    """Return the given worker if it is alive, else a new one."""
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
            return _stopped_outcome(message, verdict) if verdict else message
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


def _stopped_outcome(ended: Ended, verdict: Ended) -> Ended:
    """Return the outcome of a job that was asked to stop, with its best result so far."""
    is_stopped = ended.state is verdict.state is JobState.STOPPED
    result = ended.result if is_stopped else None
    return replace(verdict, result=result, is_warm=ended.is_warm)


def _ended_by_exit(status: int, kind: str) -> Ended:
    """Return the outcome of a job whose process died, from its exit status."""
    if status == -signal.SIGKILL:
        how, error = "was killed", _KILLED
    elif status < 0:
        name = signal.Signals(-status).name
        how, error = f"crashed ({name})", _CRASHED.format(name)
    else:
        how, error = f"exited with {status}", _EXITED.format(status)
    return Ended(state=JobState.FAILED, error=error, place=f"The process of a job {how}: {kind}")
