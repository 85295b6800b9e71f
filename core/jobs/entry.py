"""What the queue knows of a job, and how long jobs of its kind take."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from core.jobs.job import Job, JobState
from core.jobs.messages import Ended, Told

__all__ = ["Entry", "Pace"]

_LEAST_SHARE, _LEAST_SECONDS = 0.03, 4.0
"""Of a job that must be done, and run, before it is said how much longer it takes."""


@dataclass(eq=False)
class Entry:
    """A job as the queue keeps it; times are of the monotonic clock, 0 for what has not been."""

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
    heard: float = 0.0
    ended: float = 0.0
    asked: float = field(default_factory=time.monotonic)
    keep_seconds: float = math.inf

    @property
    def seconds(self) -> float:
        """That it has run."""
        return (self.ended or time.monotonic()) - self.started if self.started else 0.0

    def take_note(self, told: Told) -> None:
        """Take over how far it is."""
        self.heard, self.fraction = time.monotonic(), told.fraction
        if not self.must_stop:  # else it says that it is being stopped
            self.message = told.message

    def finish(self, ended: Ended) -> None:
        """Take over what came of it."""
        # Whoever asked to stop it does not want what it found meanwhile, but for the best so far,
        # which work that was stopped may hand over.
        self.state = JobState.STOPPED if self.must_stop else ended.state
        self.result, self.error = (ended.result if self.state is ended.state else None), ended.error
        self.payload = b""
        self.ended = self.asked = time.monotonic()

    def seen(self, before: Sequence[Entry], pace: Pace) -> Job:
        """Return the job as others see it."""
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


class Pace:
    """How long jobs take, judged by how far they are and by the last of their kind."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def learn(self, entry: Entry) -> None:
        """Take note of a job that is done."""
        self._last[entry.kind] = entry.seconds

    def left(self, entries: Sequence[Entry]) -> float | None:
        """Return the seconds until jobs are done one after another; None if that is unknown."""
        each = [self._left(entry) for entry in entries]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None

    def _left(self, entry: Entry) -> float | None:
        if entry.fraction >= _LEAST_SHARE and entry.seconds >= _LEAST_SECONDS:
            return entry.seconds * (1 / entry.fraction - 1)
        left = self._last.get(entry.kind, 0.0) - entry.seconds
        return left if left > 0 else None  # longer than the last of its kind: nobody knows
