"""Background jobs: run in a separate process, with progress, cancellation and a fair queue.

In reading order: `job` (what others see of it), `turns` (whose turn it is), `queue` (the jobs of
all visitors), `entry` (what the queue knows of one), `running` (one in its process), `worker` (the
process, seen from here), `child` (the process, seen from within).
"""

from __future__ import annotations

from leakscope.core.jobs.job import Job, JobState, Work
from leakscope.core.jobs.queue import Jobs
from leakscope.core.jobs.running import Patience

__all__ = ["Job", "JobState", "Jobs", "Patience", "Work"]
