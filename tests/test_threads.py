"""Threads that wait leave the processor to others: a busy machine slows work down, and no more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIRST = [
    "leakscope.core",
    "leakscope.core.cli",
    "leakscope.core.jobs.child",
    "leakscope.dashboard.server.command",
]
"""What is imported first by scripts, by commands, by the process of jobs and by the server."""


def spins(imports: str, **settings: str) -> int:
    """Return how often a thread looks before it sleeps, as the library of threads itself tells."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    found = subprocess.run(
        [sys.executable, "-c", f"import {imports}, torch"],
        env={**kept, "OMP_DISPLAY_ENV": "verbose", **settings},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    told = re.search(r"GOMP_SPINCOUNT = '(\d+)'", found.stderr)
    if told is None:
        pytest.skip("PyTorch is not built with GNU's threads here, which alone tell")
    return int(told[1])


@pytest.mark.slow
@pytest.mark.parametrize("imports", FIRST)
def test_threads_that_wait_are_asleep(imports: str) -> None:
    assert spins(imports) == 0


@pytest.mark.slow
def test_that_can_be_told_and_what_the_environment_says_is_kept() -> None:
    assert spins("sys") > 0
    assert spins("leakscope.core", OMP_WAIT_POLICY="active") > 0
