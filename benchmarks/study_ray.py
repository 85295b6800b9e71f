"""A study on two local Ray workers against one."""

from __future__ import annotations

import statistics
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks import Measurement
from leakscope.core.results.rows import ResultTable
from leakscope.core.studies.inversion import representations as encoders
from leakscope.core.studies.runner import run_cells

REPEATS = 2
N_CELLS = 8


def measure() -> list[Measurement]:
    """Compare the time of the same study cells on two Ray workers and on one."""
    if find_spec("ray") is None:
        return []
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(REPEATS):
        for n_workers, found in seconds.items():
            found.append(_time_cells(n_workers))
    one, two = (statistics.median(found) for found in seconds.values())
    return [
        Measurement(
            name=f"two Ray workers, {N_CELLS} cells",
            value=one / two,
            unit="× one worker",
            goal=1.6,
            n=REPEATS,
            note=f"{two:.1f} s against {one:.1f} s, a thread each, workers started before",
        )
    ]


def _cells(seeds: range) -> list[dict[str, object]]:
    """Build the study cells, one per seed: each trains a classifier on 2,000 sentences."""
    return encoders.EncoderStudy(
        target="lee",
        other="lee",
        encoders=("lsa_tfidf",),
        attacks=("mlc",),
        domains=("in",),
        sizes=(2000,),
        n_targets=100,
        seeds=tuple(seeds),
        attack_settings=(("epochs", 6), ("patience", 6), ("device", "cpu")),
    ).cells()


def _time_cells(n_workers: int) -> float:
    """Run the study cells on n_workers Ray workers and return the seconds."""
    from leakscope.core.studies.cluster import ray_workers

    with tempfile.TemporaryDirectory() as folder, ray_workers("local", n_workers) as n_jobs:
        # Every worker imports the libraries before the clock runs.
        run_cells(
            _cells(range(100, 100 + 2 * n_workers)), encoders.measure, Path(folder), n_jobs=n_jobs
        )
        start = time.perf_counter()
        rows = run_cells(_cells(range(N_CELLS)), encoders.measure, Path(folder), n_jobs=n_jobs)
        seconds = time.perf_counter() - start
    assert not ResultTable(rows).failed
    return seconds
