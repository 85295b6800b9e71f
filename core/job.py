"""A job as others see it: its state, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.protocols import OnProgress

__all__ = ["Job", "JobState", "Work"]

Work = Callable[[OnProgress], Any]
"""What a job runs; it is stopped by StoppedError out of its `on_progress`."""


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

    `request` is what the caller gave to recognise it by, `result` what the work returned,
    `error` a sentence for the user.
    """

    id: str
    request: Any
    state: JobState
    fraction: float
    message: str
    seconds: float
    result: Any = None
    error: str = ""

    @property
    def is_final(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in (JobState.DONE, JobState.STOPPED, JobState.FAILED)
