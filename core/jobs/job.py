"""Snapshot of a job: its state, progress and result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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
