"""Messages between the job process and the server."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Self

from leakscope.core.errors import CoreError, StoppedError, StoppedSearch
from leakscope.core.jobs.job import JobState

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
        """Return the outcome of a job that raised an exception."""
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
