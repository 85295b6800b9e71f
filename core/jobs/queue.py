"""The queue of all visitors' jobs: fair turns, one job at a time, in memory only.

A job has an id that cannot be guessed, so that a page that was reloaded finds it again.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from copy import copy
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, TypeVar

from leakscope.core.errors import InvalidInputError
from leakscope.core.jobs.job import DurationEstimates, Ended, Entry, Job, JobState, Work
from leakscope.core.jobs.running import Patience, Worker, run

_T = TypeVar("_T")
_Owner = tuple[str, ...]


class FairQueue(Generic[_T]):
    """A fair queue of items, round-robin over shares (such as offices) and over owners within them.

    Who had a turn goes to the end of the line when it is over, and so does their share.

    Examples
    --------
    >>> turns = FairQueue()
    >>> for owner, item in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")]:
    ...     turns.add(owner, item)
    >>> [turns.take() for _ in range(len(turns))]
    ['a1', 'b1', 'a2', 'a3']
    >>> for owner, share in [("a", "one"), ("b", "one"), ("c", "two")]:
    ...     turns.add(owner, owner, share=share)
    >>> [turns.take() for _ in range(len(turns))]
    ['a', 'c', 'b']
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[_Owner, _T]] = []
        self._serving: _Owner | None = None
        self._places: dict[_Owner, int] = {}
        self._last = 0

    def __len__(self) -> int:
        """Return the number of queued items, without the one whose turn it is."""
        return len(self._waiting)

    def add(self, owner: str, item: _T, *, share: str = "") -> None:
        """Queue an item behind its owner's others; without a share, the owner is its own share."""
        key = (share or owner, owner)
        for line in (key[:1], key):
            if line not in self._places:
                self._to_end(line)
        self._waiting.append((key, item))

    def count(self, owner: str) -> int:
        """Return how many items of an owner are waiting."""
        return sum(key[1] == owner for key, _ in self._waiting)

    def count_of_share(self, share: str) -> int:
        """Return how many items of a share are waiting."""
        return sum(key[0] == share for key, _ in self._waiting)

    def take(self) -> _T:
        """End the turn before; remove and return the next item."""
        self.finish()
        places = self._places
        at = min(
            range(len(self._waiting)),
            key=lambda i: (places[self._waiting[i][0][:1]], places[self._waiting[i][0]]),
        )
        self._serving, item = self._waiting.pop(at)
        return item

    def finish(self) -> None:
        """End the current turn: its owner and share go to the end of the queue."""
        if self._serving is not None:
            for line in (self._serving[:1], self._serving):
                self._to_end(line)
        self._serving = None
        self._forget()

    def remove(self, item: _T) -> None:
        """Remove a waiting item from the queue."""
        self._waiting = [(key, other) for key, other in self._waiting if other is not item]
        self._forget()

    def in_order(self) -> list[_T]:
        """Return all waiting items in the order in which they would be taken."""
        line = copy(self)
        line._waiting, line._places = [*self._waiting], {**self._places}
        return [line.take() for _ in range(len(self))]

    def _to_end(self, line: _Owner) -> None:
        """Move an owner, or a share, to the end of its order."""
        self._last += 1
        self._places[line] = self._last

    def _forget(self) -> None:
        """Drop the positions of owners and shares without queued items."""
        keys = {key for key, _ in self._waiting} | ({self._serving} if self._serving else set())
        kept = {line for key in keys for line in (key[:1], key)}
        self._places = {line: place for line, place in self._places.items() if line in kept}


_LOG = logging.getLogger(__name__)


class Jobs:
    """Runs jobs one after another in a worker process that is reused.

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
        self._turns: FairQueue[Entry] = FairQueue()
        self._running: Entry | None = None
        self._pace = DurationEstimates()
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
        """Queue `function(*arguments, on_progress)` and return its job id.

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
            self._check_limits(owner, share)
            kind = f"{function.__module__}.{function.__qualname__} {kind}"
            entry = Entry(secrets.token_urlsafe(16), kind, request, payload, owner)
            self._entries[entry.id] = entry
            self._turns.add(owner, entry, share=share)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return entry.id

    def _check_limits(self, owner: str, share: str) -> None:
        """Raise InvalidInputError if an owner, a share or the queue has too many waiting jobs."""
        if self._turns.count(owner) >= self.max_waiting_each:
            raise InvalidInputError(
                f"You already have {self.max_waiting_each} waiting jobs. "
                "Wait until one finishes, or stop one."
            )
        most = max(self.max_waiting - self.max_waiting_each, 1)
        if share and self._turns.count_of_share(share) >= most:
            raise InvalidInputError(
                f"{most} jobs from your address or account are already waiting. Try again in a "
                "minute."
            )
        if len(self._turns) >= self.max_waiting:
            raise InvalidInputError(
                f"{self.max_waiting} jobs of all visitors are already waiting. Try again in a "
                "minute."
            )

    def view(self, job_id: str) -> Job | None:
        """Return a snapshot of a job by its id and postpone its deletion; None if it is unknown."""
        with self._changed:
            self._forget_old()
            entry = self._entries.get(job_id)
            if entry is None:
                return None
            entry.asked = time.monotonic()
            return entry.snapshot(self._jobs_ahead(entry), self._pace)

    def _jobs_ahead(self, entry: Entry) -> list[Entry]:
        """Return the running and the waiting jobs ahead of a waiting job; none if it runs."""
        if entry.state is not JobState.WAITING:
            return []
        order = self._turns.in_order()
        running = [self._running] if self._running else []
        return running + order[: order.index(entry)]

    def stop(self, job_id: str) -> None:
        """Stop a job by its id: at once if it waits, within two seconds if it runs."""
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
        """Stop a job by its id and delete all its data, its result included."""
        self.stop(job_id)
        with self._changed:
            self._entries.pop(job_id, None)

    def forget_after(self, job_id: str, seconds: float) -> None:
        """Set how long one job's data are kept after its last view, once finished; by its id."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is not None:
                entry.keep_seconds = seconds
                self._changed.notify_all()

    def wait(self, job_id: str, timeout: float | None = None) -> Job | None:
        """Block until a job has ended or `timeout` seconds are over; return its snapshot."""
        with self._changed:
            entry = self._entries.get(job_id)
            if entry is not None:
                self._changed.wait_for(lambda: entry.ended > 0, timeout)
        return self.view(job_id)

    def close(self) -> None:
        """Stop all jobs, end the worker process and wait for the queue thread."""
        for job_id in list(self._entries):
            self.stop(job_id)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        """Run queued jobs until the queue is closed (the queue thread's main loop)."""
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
        """Wait for a queued job; return whether one came before the timeout."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not len(self._turns) and not self._is_closed:
                self._forget_old()
                now = time.monotonic()
                if end is not None and now >= end:
                    return False
                ends = [self._deletion_time(e) for e in self._entries.values() if e.ended]
                moments = [*ends, *([] if end is None else [end])]
                self._changed.wait(max(0.0, min(moments) - now) + 0.01 if moments else None)
            return not self._is_closed

    def _run_next(self, worker: Worker | None) -> Worker | None:
        """Take and run the next job in the worker; return the worker, or None if it has ended."""
        with self._changed:
            if not len(self._turns):  # it was stopped this moment
                return worker
            self._running = entry = self._turns.take()
            entry.state, entry.started = JobState.RUNNING, time.monotonic()
            entry.message, entry.last_progress = "Starting", entry.started
        worker, ended = run(
            entry, worker, lambda e: self.patience.judge(e, is_crowded=len(self._turns) > 0)
        )
        if ended.place:
            _LOG.error("%s", ended.place)
        with self._changed:
            self._running = None
            self._turns.finish()
            self._end(entry, ended)
        return worker

    def _end(self, entry: Entry, ended: Ended) -> None:
        """Record how a job ended, and wake the threads that wait for it."""
        entry.finish(ended)
        if ended.state is JobState.DONE:
            self._pace.record_duration(entry)
        self._changed.notify_all()

    def _forget_old(self) -> None:
        """Delete finished jobs whose retention time is over."""
        now = time.monotonic()
        for entry in [
            e for e in self._entries.values() if e.ended and self._deletion_time(e) < now
        ]:
            del self._entries[entry.id]

    def _deletion_time(self, entry: Entry) -> float:
        """Return the time at which a finished job will be deleted, unless it is viewed again."""
        return entry.asked + min(self.keep_seconds, entry.keep_seconds)
