"""A job: its public snapshot, the queue's record of it, and the messages of its process."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from leakscope.core.errors import CoreError, StoppedError, StoppedSearch

Work = Callable[..., Any]
"""A job's function: defined at module level, called with the job's arguments and an `on_progress`.
It is stopped by StoppedError raised from `on_progress`, or by killing its process."""


class JobState(StrEnum):
    """The state of a job; the last three are final."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Job:
    """An immutable snapshot of a job.

    Attributes
    ----------
    request : object
        What the caller gave to recognise it by.
    owner : str
        Id of its owner.
    seconds : float
        Seconds that it has run.
    n_before : int
        Jobs that come first, the running one included; 0 for one that does not wait.
    seconds_left : float or None
        Until its turn where it waits, until its end where it runs; None where nobody can tell.
    result : object
        What the work returned; of work that was stopped the best so far, where it has such.
    error : str
        A sentence for the user.
    """

    id: str
    request: Any
    owner: str = field(repr=False)
    state: JobState
    fraction: float
    message: str
    seconds: float
    n_before: int = 0
    seconds_left: float | None = None
    result: Any = None
    error: str = ""

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self.state in (JobState.DONE, JobState.STOPPED, JobState.FAILED)


_FAULT = "This is a bug in Leakscope; the log shows where."
_NO_MEMORY = "There was not enough memory. Use fewer or shorter texts, or close other programs."


@dataclass(frozen=True)
class Ready:
    """The job process is ready for a job."""


@dataclass(frozen=True)
class Stop:
    """Request to stop the job at its next progress report."""


@dataclass(frozen=True)
class Progress:
    """Progress of a job: fraction and message."""

    fraction: float
    message: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a job ended: state, result or error.

    `error` is a sentence for the user, `place` lines for the log that hold nothing typed,
    `is_warm` whether the process can be used again.
    """

    state: JobState
    result: Any = None
    error: str = ""
    place: str = ""
    is_warm: bool = False

    @classmethod
    def from_exception(cls, fault: BaseException) -> Self:
        """Return the end of a job that raised an exception: stopped or failed, with a message."""
        if isinstance(fault, StoppedSearch):
            return cls(state=JobState.STOPPED, result=fault.answers)
        if isinstance(fault, StoppedError):
            return cls(state=JobState.STOPPED)
        if isinstance(fault, CoreError):
            return cls(state=JobState.FAILED, error=str(fault))
        # Its message may hold what was typed: only the place is logged.
        frames = "".join(traceback.format_tb(fault.__traceback__))
        place = f"{type(fault).__name__} in a job, at\n{frames}"
        error = _NO_MEMORY if isinstance(fault, MemoryError) else _FAULT
        return cls(state=JobState.FAILED, error=error, place=place)


Message = Ready | Progress | Ended


_LEAST_SHARE, _LEAST_SECONDS = 0.03, 4.0
"""Minimum progress and seconds before the remaining time is estimated."""


@dataclass(eq=False)
class Entry:
    """The queue's mutable record of a job; times are monotonic, 0 for what has not happened."""

    id: str
    kind: str
    request: Any
    payload: bytes = field(repr=False)
    owner: str = field(repr=False)
    state: JobState = JobState.WAITING
    fraction: float = 0.0
    message: str = "Waiting for its turn"
    result: Any = None
    error: str = ""
    must_stop: bool = False
    started: float = 0.0
    last_progress: float = 0.0
    ended: float = 0.0
    asked: float = field(default_factory=time.monotonic)
    keep_seconds: float = math.inf

    @property
    def seconds(self) -> float:
        """The seconds that the job has run so far, or ran in all."""
        return (self.ended or time.monotonic()) - self.started if self.started else 0.0

    def update_progress(self, told: Progress) -> None:
        """Set the job's fraction and message from a progress report of its process."""
        self.last_progress, self.fraction = time.monotonic(), told.fraction
        if not self.must_stop:  # else it says that it is being stopped
            self.message = told.message

    def finish(self, ended: Ended) -> None:
        """Set the job's final state, result and error, and drop its pickled payload."""
        # A user who stops a job does not want its result, except the best one so far,
        # which work that was stopped may hand over.
        self.state = JobState.STOPPED if self.must_stop else ended.state
        self.result, self.error = (ended.result if self.state is ended.state else None), ended.error
        self.payload = b""
        self.ended = self.asked = time.monotonic()

    def snapshot(self, before: Sequence[Entry], pace: DurationEstimates) -> Job:
        """Return an immutable snapshot of the job, given the jobs before it."""
        is_waiting = self.state is JobState.WAITING
        return Job(
            id=self.id,
            request=self.request,
            owner=self.owner,
            state=self.state,
            fraction=self.fraction,
            message=self.message,
            seconds=self.seconds,
            n_before=len(before),
            seconds_left=None
            if self.ended
            else pace.seconds_left(before if is_waiting else [self]),
            result=self.result,
            error=self.error,
        )


class DurationEstimates:
    """Estimates how long jobs take, from their progress and from the last job of their kind."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def record_duration(self, entry: Entry) -> None:
        """Remember a finished job's duration for later jobs of its kind."""
        self._last[entry.kind] = entry.seconds

    def seconds_left(self, entries: Sequence[Entry]) -> float | None:
        """Estimate the seconds until all these jobs are done, in sequence; None if unknown."""
        each = [self._seconds_left_of(entry) for entry in entries]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None

    def _seconds_left_of(self, entry: Entry) -> float | None:
        """Estimate the seconds that one job still takes; None if unknown."""
        if entry.fraction >= _LEAST_SHARE and entry.seconds >= _LEAST_SECONDS:
            return entry.seconds * (1 / entry.fraction - 1)
        left = self._last.get(entry.kind, 0.0) - entry.seconds
        return left if left > 0 else None  # longer than the last of its kind: nobody knows
