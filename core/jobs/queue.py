"""The jobs of all visitors: queued in fair turns, run one at a time, kept in memory alone.

A job has an id that cannot be guessed, so that a page that was reloaded finds it again.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from core.errors import InvalidInputError
from core.jobs.entry import Entry, Pace
from core.jobs.job import Job, JobState, Work
from core.jobs.messages import Ended
from core.jobs.running import Patience, run
from core.jobs.turns import Turns
from core.jobs.worker import Worker

__all__ = ["Jobs"]

_LOG = logging.getLogger(__name__)


class Jobs:
    """Runs work one after another in a process of its own, which stays for the next.

    Parameters
    ----------
    max_waiting, max_waiting_each : int
        Jobs that may queue, of all owners and of one; one more is refused.
    keep_seconds : float
        How long a finished job, and with it the text it holds, is kept after it was last seen.
    patience : Patience
        When a running job is ended though nobody asked.
    idle_seconds : float
        How long the process waits for the next job, with all that it has loaded.
    prepare : callable, optional
        A function of a module that each process runs before its first job.
    """

    def __init__(
        self,
        *,
        max_waiting: int = 12,
        max_waiting_each: int = 4,
        keep_seconds: float = 600.0,
        patience: Patience | None = None,
        idle_seconds: float = 300.0,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.max_waiting, self.max_waiting_each = max_waiting, max_waiting_each
        self.keep_seconds, self.idle_seconds = keep_seconds, idle_seconds
        self.patience = patience or Patience()
        self._prepare = prepare
        self._entries: dict[str, Entry] = {}
        self._turns: Turns[Entry] = Turns()
        self._running: Entry | None = None
        self._pace = Pace()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(
        self,
        function: Work,
        *arguments: Any,
        request: Any = None,
        owner: str = "",
        share: str = "",
        kind: str = "",
    ) -> str:
        """Queue `function(*arguments, on_progress)` and return the id of its job.

        Parameters
        ----------
        function, arguments
            A function of a module and what can be sent to another process: plain data and NumPy
            arrays. So is what it returns.
        request : object, optional
            What to recognise the job by; it stays here.
        owner : str
            Who takes turns with the others, and whose the job is.
        share : str
            From where they come, which takes one turn for all of its owners; an owner who comes
            back by another name gets none besides. Their own where it is empty.
        kind : str
            What of the arguments decides how long it takes; empty where nothing does.

        Raises
        ------
        InvalidInputError
            Too many jobs are waiting.
        """
        if "<locals>" in function.__qualname__ or function.__module__ == "__main__":
            raise TypeError(f"{function.__qualname__} is not a function of a module.")
        payload = bytes(ForkingPickler.dumps((self._prepare, function, arguments)))
        with self._changed:
            self._forget_old()
            self._refuse_too_many(owner, share)
            kind = f"{function.__module__}.{function.__qualname__} {kind}"
            entry = Entry(secrets.token_urlsafe(16), kind, request, payload, owner)
            self._entries[entry.id] = entry
            self._turns.add(owner, entry, share=share)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return entry.id

    def _refuse_too_many(self, owner: str, share: str) -> None:
        if self._turns.count(owner) >= self.max_waiting_each:
            raise InvalidInputError(
                f"{self.max_waiting_each} slow jobs of yours are waiting already. "
                "Wait for one to finish, or stop one."
            )
        most = max(self.max_waiting - self.max_waiting_each, 1)
        if share and self._turns.count_of_share(share) >= most:
            raise InvalidInputError(
                f"{most} slow jobs are waiting already, of all who come from your address or "
                "account. Try again in a minute."
            )
        if len(self._turns) >= self.max_waiting:
            raise InvalidInputError(
                f"{self.max_waiting} slow jobs are waiting already, of all visitors together. "
                "Try again in a minute."
            )

    def view(self, job_id: str) -> Job | None:
        """Return a job as it stands, or None where there is none (any more)."""
        with self._changed:
            self._forget_old()
            entry = self._entries.get(job_id)
            if entry is None:
                return None
            entry.asked = time.monotonic()
            return entry.seen(self._before(entry), self._pace)

    def _before(self, entry: Entry) -> list[Entry]:
        """Return the jobs that come before one that waits."""
        if entry.state is not JobState.WAITING:
            return []
        order = self._turns.in_order()
        running = [self._running] if self._running else []
        return running + order[: order.index(entry)]

    def stop(self, job_id: str) -> None:
        """Stop a job: at once where it waits, within two seconds where it runs."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is None or entry.ended:
                return
            entry.must_stop = True
            if entry.state is JobState.WAITING:
                self._turns.remove(entry)
                self._end(entry, Ended(state=JobState.STOPPED))
            else:
                entry.message = "Stopping"

    def forget(self, job_id: str) -> None:
        """Stop a job and drop all that is known of it, its request and result included."""
        self.stop(job_id)
        with self._changed:
            self._entries.pop(job_id, None)

    def forget_after(self, job_id: str, seconds: float) -> None:
        """Forget a job that is final so long after it was last seen."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is not None:
                entry.keep_seconds = seconds
                self._changed.notify_all()

    def wait(self, job_id: str, timeout: float | None = None) -> Job | None:
        """Block until a job is final or the time is over, and return it as it then stands."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is not None:
                self._changed.wait_for(lambda: entry.ended > 0, timeout)
        return self.view(job_id)

    def close(self) -> None:
        """Stop all jobs and end their process."""
        for job_id in list(self._entries):
            self.stop(job_id)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        worker: Worker | None = None
        while not self._is_closed:
            if self._has_next(self.idle_seconds if worker else None):
                worker = self._run_next(worker)
            elif worker is not None:
                worker.end()
                worker = None
        if worker is not None:
            worker.end()

    def _has_next(self, timeout: float | None) -> bool:
        """Wait for a job, and return whether one came in time; meanwhile forget what is old."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not len(self._turns) and not self._is_closed:
                self._forget_old()
                now = time.monotonic()
                if end is not None and now >= end:
                    return False
                ends = [self._end_of(e) for e in self._entries.values() if e.ended]
                moments = [*ends, *([] if end is None else [end])]
                self._changed.wait(max(0.0, min(moments) - now) + 0.01 if moments else None)
            return not self._is_closed

    def _run_next(self, worker: Worker | None) -> Worker | None:
        """Run the job whose turn it is; what it holds is known here no longer than it takes."""
        with self._changed:
            if not len(self._turns):  # it was stopped this moment
                return worker
            self._running = entry = self._turns.take()
            entry.state, entry.started = JobState.RUNNING, time.monotonic()
            entry.message, entry.heard = "Starting", entry.started
        worker, ended = run(entry, worker, self._judge)
        if ended.place:
            _LOG.error("%s", ended.place)
        with self._changed:
            self._running = None
            self._turns.finish()
            self._end(entry, ended)
        return worker

    def _judge(self, entry: Entry) -> Ended | None:
        return self.patience.judge(entry, is_crowded=len(self._turns) > 0)

    def _end(self, entry: Entry, ended: Ended) -> None:
        entry.finish(ended)
        if ended.state is JobState.DONE:
            self._pace.learn(entry)
        self._changed.notify_all()

    def _forget_old(self) -> None:
        now = time.monotonic()
        for entry in [e for e in self._entries.values() if e.ended and self._end_of(e) < now]:
            del self._entries[entry.id]

    def _end_of(self, entry: Entry) -> float:
        """Return when a job that is final is forgotten, unless somebody looks at it."""
        return entry.asked + min(self.keep_seconds, entry.keep_seconds)
