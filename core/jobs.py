"""Slow work beside the script that asked for it: started, followed, stopped, and forgotten.

A job lives in memory alone, under an id that cannot be guessed, so that a page that was reloaded
finds it again. One thread works at a time: the jobs of all visitors together use no more of the
processor than one attack does.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core.errors import CoreError, InvalidInputError, StoppedError
from core.job import Job, JobState, Work

__all__ = ["Job", "JobState", "Jobs", "Work"]

_LOG = logging.getLogger(__name__)


@dataclass
class _Entry:
    id: str
    request: Any
    work: Work | None
    state: JobState = JobState.WAITING
    fraction: float = 0.0
    message: str = "Waiting for its turn"
    result: Any = None
    error: str = ""
    must_stop: bool = False
    started: float = 0.0
    ended: float = 0.0
    asked: float = field(default_factory=time.monotonic)


class Jobs:
    """Runs work one after another in a thread of its own.

    Parameters
    ----------
    max_waiting : int
        Jobs that may queue; one more is refused.
    keep_seconds : float
        How long a finished job, and with it the text it holds, is kept after it was last seen.
    abandon_seconds : float
        A running job that nobody looked at for so long is stopped.
    crowded_seconds : float
        The same while another job waits. Above a minute: a browser lets a page in a hidden tab
        look once a minute.
    on_thread_start : callable, optional
        Run once in the working thread, such as to bound the threads of a library.
    """

    def __init__(
        self,
        *,
        max_waiting: int = 8,
        keep_seconds: float = 600.0,
        abandon_seconds: float = 180.0,
        crowded_seconds: float = 75.0,
        on_thread_start: Callable[[], None] | None = None,
    ) -> None:
        self.max_waiting, self.keep_seconds = max_waiting, keep_seconds
        self.abandon_seconds = abandon_seconds
        self.crowded_seconds = min(crowded_seconds, abandon_seconds)
        self._on_thread_start = on_thread_start
        self._entries: dict[str, _Entry] = {}
        self._queue: deque[_Entry] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self, work: Work, *, request: Any = None) -> str:
        """Queue work and return the id of its job.

        Raises
        ------
        InvalidInputError
            Too many jobs are waiting.
        """
        with self._changed:
            self._forget_old()
            if len(self._queue) >= self.max_waiting:
                raise InvalidInputError(
                    f"{self.max_waiting} slow attacks are waiting already. "
                    "Wait for one to finish, or stop one."
                )
            entry = _Entry(secrets.token_urlsafe(16), request, work)
            self._entries[entry.id] = entry
            self._queue.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return entry.id

    def view(self, job_id: str) -> Job | None:
        """Return a job as it stands, or None where there is none (any more)."""
        with self._changed:
            self._forget_old()
            entry = self._entries.get(job_id)
            if entry is None:
                return None
            entry.asked = now = time.monotonic()
            until = entry.ended or now
            return Job(
                id=entry.id,
                request=entry.request,
                state=entry.state,
                fraction=entry.fraction,
                message=entry.message,
                seconds=until - entry.started if entry.started else 0.0,
                result=entry.result,
                error=entry.error,
            )

    def stop(self, job_id: str) -> None:
        """Stop a job: at once where it waits, at its next sign of progress where it runs."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is None or entry.state not in (JobState.WAITING, JobState.RUNNING):
                return
            entry.must_stop = True
            if entry.state is JobState.WAITING:
                self._queue.remove(entry)
                self._end(entry, JobState.STOPPED)
            else:
                entry.message = "Stopping"
            self._changed.notify_all()

    def forget(self, job_id: str) -> None:
        """Stop a job and drop all that is known of it, its request and result included."""
        self.stop(job_id)
        with self._changed:
            self._entries.pop(job_id, None)

    def wait(self, job_id: str, timeout: float | None = None) -> Job | None:
        """Block until a job is final or the time is over, and return it as it then stands."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is not None:
                self._changed.wait_for(lambda: entry.ended > 0, timeout)
        return self.view(job_id)

    def _serve(self) -> None:
        if self._on_thread_start is not None:
            self._on_thread_start()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._queue) > 0)
                entry = self._queue.popleft()
                entry.state, entry.started = JobState.RUNNING, time.monotonic()
                entry.message = "Starting"
                work, entry.work = entry.work, None
            assert work is not None
            self._run(entry, work)

    def _run(self, entry: _Entry, work: Work) -> None:
        def report(fraction: float, message: str) -> None:
            patience = self.crowded_seconds if self._queue else self.abandon_seconds
            is_abandoned = time.monotonic() - entry.asked > patience
            if entry.must_stop or is_abandoned:
                raise StoppedError("Stopped.")
            entry.fraction, entry.message = min(max(fraction, 0.0), 1.0), message

        state, result, error = JobState.DONE, None, ""
        try:
            result = work(report)
        except StoppedError:
            state = JobState.STOPPED
        except CoreError as problem:
            state, error = JobState.FAILED, str(problem)
        except Exception as fault:
            # The message may hold what the user typed: the log gets the place alone.
            state, error = JobState.FAILED, "This is a fault of ours; the log says where."
            frames = "".join(traceback.format_tb(fault.__traceback__))
            _LOG.error("%s in a job, at\n%s", type(fault).__name__, frames)
        with self._changed:
            entry.result, entry.error = result, error
            self._end(entry, state)

    def _end(self, entry: _Entry, state: JobState) -> None:
        entry.state, entry.ended = state, time.monotonic()
        entry.asked, entry.work = entry.ended, None
        self._changed.notify_all()

    def _forget_old(self) -> None:
        horizon = time.monotonic() - self.keep_seconds
        for entry in [e for e in self._entries.values() if e.ended and e.asked < horizon]:
            del self._entries[entry.id]
