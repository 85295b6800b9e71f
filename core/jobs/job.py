"""A job as others see it: its state, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Job", "JobState", "Work"]

Work = Callable[..., Any]
"""What a job runs: a function of a module, called with the job's arguments and an `on_progress`.

It is stopped by StoppedError out of `on_progress`, or by the end of its process.
"""


class JobState(StrEnum):
    """Where a job is; the last three are final."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as it stands at one moment.

    Attributes
    ----------
    request : object
        What the caller gave to recognise it by.
    owner : str
        Whose it is.
    seconds : float
        That it has run.
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
        """Whether nothing will change any more."""
        return self.state in (JobState.DONE, JobState.STOPPED, JobState.FAILED)
