"""Background jobs: run in a separate process, with progress, cancellation and a fair queue.

In reading order: `job` (a job, as others and as the queue see it, and the messages about it),
`queue` (the jobs of all visitors, in turns), `running` (the process, seen from here), `child` (the
process, seen from within).
"""

from __future__ import annotations

from leakscope.core.jobs.job import Job, JobState, Work
from leakscope.core.jobs.queue import Jobs
from leakscope.core.jobs.running import Patience

__all__ = ["Job", "JobState", "Jobs", "Patience", "Work"]
