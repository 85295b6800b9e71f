"""What the process of a job and the one that started it tell each other."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Self

from core.errors import CoreError, StoppedError, StoppedSearch
from core.jobs.job import JobState

__all__ = ["Ended", "Message", "Ready", "Stop", "Told"]

_FAULT = "This is a fault of ours; the log says where."
_NO_MEMORY = (
    "The memory did not suffice. Try less at once, such as fewer or shorter texts, or close other "
    "programs."
)


@dataclass(frozen=True)
class Ready:
    """The process waits for work."""


@dataclass(frozen=True)
class Stop:
    """The work shall end at its next sign of progress."""


@dataclass(frozen=True)
class Told:
    """How far the work is."""

    fraction: float
    message: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What came of the work.

    `error` is a sentence for the user, `place` lines for the log that hold nothing typed,
    `is_warm` whether the process can be used again.
    """

    state: JobState
    result: Any = None
    error: str = ""
    place: str = ""
    is_warm: bool = False

    @classmethod
    def by(cls, fault: BaseException) -> Self:
        """Return how work ended that raised something."""
        if isinstance(fault, StoppedSearch):
            return cls(state=JobState.STOPPED, result=fault.answers)
        if isinstance(fault, StoppedError):
            return cls(state=JobState.STOPPED)
        if isinstance(fault, CoreError):
            return cls(state=JobState.FAILED, error=str(fault))
        # Its message may hold what was typed: the log gets the place alone.
        frames = "".join(traceback.format_tb(fault.__traceback__))
        place = f"{type(fault).__name__} in a job, at\n{frames}"
        error = _NO_MEMORY if isinstance(fault, MemoryError) else _FAULT
        return cls(state=JobState.FAILED, error=error, place=place)


Message = Ready | Told | Ended
