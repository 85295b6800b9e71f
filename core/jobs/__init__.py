"""Slow work beside whoever asked for it: in a process of its own, followed, stopped, forgotten.

In reading order: `job` (what others see of it), `turns` (whose turn it is), `queue` (the jobs of
all visitors), `entry` (what the queue knows of one), `running` (one in its process), `worker` (the
process, seen from here), `child` (the process, seen from within).
"""

from __future__ import annotations

from core.jobs.job import Job, JobState, Work
from core.jobs.queue import Jobs
from core.jobs.running import Patience

__all__ = ["Job", "JobState", "Jobs", "Patience", "Work"]
