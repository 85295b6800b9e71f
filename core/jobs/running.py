"""One job in its process: handed over, listened to, and ended where it must be."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from core.jobs.entry import Entry
from core.jobs.job import JobState
from core.jobs.messages import Ended, Ready, Told
from core.jobs.worker import Worker

__all__ = ["Patience", "run"]

_LOOK_EVERY = 0.05
_GRACE = 1.0
"""Seconds from asking work to stop to ending its process."""

_NO_ROOM = "The computer has no room for another process. Close other programs and try again."
_KILLED = (
    "The computer ended the work, most often because its memory ran out. Try less at once, such "
    "as fewer or shorter texts, or close other programs."
)
_CRASHED = "The work crashed ({}). Try again; if it crashes again, try less at once."
_EXITED = "The work ended without an answer (exit status {}). Try again, or try less at once."


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When a running job is ended: at once where its visitor asks, else when nobody seems to.

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
        """Return how a job has to end, or None where it may go on."""
        if entry.must_stop:
            return Ended(state=JobState.STOPPED)
        now = time.monotonic()
        longest = min(self.crowded_seconds, self.abandon_seconds)
        if now - entry.asked > (longest if is_crowded else self.abandon_seconds):
            return Ended(state=JobState.STOPPED)
        if is_crowded and now - entry.heard > self.silent_seconds:
            return Ended(
                state=JobState.FAILED,
                error=f"It gave no sign of progress for {self.silent_seconds:.0f} s while others "
                "waited, so it was ended. Try less at once, or use the command line.",
            )
        most = self.crowded_longest_seconds if is_crowded else self.longest_seconds
        if now - entry.started > most:
            where = " while others wait" if is_crowded else ""
            return Ended(
                state=JobState.FAILED,
                error=f"It ran for more than {most / 60:.0f} minutes, the longest that one job may "
                f"take{where}, so it was ended. Try less at once, or use the command line.",
            )
        return None


def run(
    entry: Entry, worker: Worker | None, judge: Callable[[Entry], Ended | None]
) -> tuple[Worker | None, Ended]:
    """Run a job to its end and return its process and what came of it.

    The process is the one that is there, or a new one. None where it has ended.
    """
    verdict = judge(entry)
    if verdict is not None:  # it was left while it waited, and costs nobody the process
        return worker, verdict
    try:
        worker = _ready(worker)
    except OSError:
        return None, Ended(state=JobState.FAILED, error=_NO_ROOM)
    except Exception as fault:
        return None, Ended.by(fault)
    try:
        ended = _follow(entry, worker, judge)
    except (EOFError, OSError):
        return None, _death(worker.end(), entry.kind)
    except Exception as fault:  # a result that cannot be read here
        ended = Ended.by(fault)
    if not ended.is_warm:
        worker.end()
        worker = None
    return worker, ended


def _ready(worker: Worker | None) -> Worker:
    """Return the process that is there if it runs, else a new one."""
    if worker is not None:
        if worker.is_alive():
            return worker
        worker.end()
    return Worker()


def _follow(entry: Entry, worker: Worker, judge: Callable[[Entry], Ended | None]) -> Ended:
    is_handed_over, asked = False, 0.0
    verdict: Ended | None = None
    while True:
        message = worker.listen(_LOOK_EVERY)
        if isinstance(message, Ended):
            return _ruled(message, verdict) if verdict else message
        if isinstance(message, Told):
            entry.take_note(message)
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


def _ruled(ended: Ended, verdict: Ended) -> Ended:
    """Return how work ended that was asked to stop: as judged, with the best that it had."""
    is_stopped = ended.state is verdict.state is JobState.STOPPED
    result = ended.result if is_stopped else None
    return replace(verdict, result=result, is_warm=ended.is_warm)


def _death(status: int, kind: str) -> Ended:
    """Return how a job is told whose process ended without an answer."""
    if status == -signal.SIGKILL:
        how, error = "was killed", _KILLED
    elif status < 0:
        name = signal.Signals(-status).name
        how, error = f"crashed ({name})", _CRASHED.format(name)
    else:
        how, error = f"exited with {status}", _EXITED.format(status)
    return Ended(state=JobState.FAILED, error=error, place=f"The process of a job {how}: {kind}")
