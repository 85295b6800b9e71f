"""The queue's record of a job, and estimates of how long jobs take."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leakscope.core.jobs.job import Job, JobState
from leakscope.core.jobs.messages import Ended, Progress

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
        """Seconds that it has run."""
        return (self.ended or time.monotonic()) - self.started if self.started else 0.0

    def update_progress(self, told: Progress) -> None:
        """Update the job's progress from a message of its process."""
        self.last_progress, self.fraction = time.monotonic(), told.fraction
        if not self.must_stop:  # else it says that it is being stopped
            self.message = told.message

    def finish(self, ended: Ended) -> None:
        """Record how the job ended."""
        # Whoever asked to stop it does not want what it found meanwhile, but for the best so far,
        # which work that was stopped may hand over.
        self.state = JobState.STOPPED if self.must_stop else ended.state
        self.result, self.error = (ended.result if self.state is ended.state else None), ended.error
        self.payload = b""
        self.ended = self.asked = time.monotonic()

    def snapshot(self, before: Sequence[Entry], pace: DurationEstimates) -> Job:
        """Return an immutable snapshot of the job."""
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
            seconds_left=None if self.ended else pace.left(before if is_waiting else [self]),
            result=self.result,
            error=self.error,
        )


class DurationEstimates:
    """Estimates how long jobs take, from their progress and from the last job of their kind."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def learn(self, entry: Entry) -> None:
        """Record the duration of a finished job."""
        self._last[entry.kind] = entry.seconds

    def left(self, entries: Sequence[Entry]) -> float | None:
        """Return the seconds until these jobs are all done, in sequence; None if unknown."""
        each = [self._left(entry) for entry in entries]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None

    def _left(self, entry: Entry) -> float | None:
        """Return the remaining seconds of one job; None if unknown."""
        if entry.fraction >= _LEAST_SHARE and entry.seconds >= _LEAST_SECONDS:
            return entry.seconds * (1 / entry.fraction - 1)
        left = self._last.get(entry.kind, 0.0) - entry.seconds
        return left if left > 0 else None  # longer than the last of its kind: nobody knows
