"""Overhead of the study runner over the bare measurements."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import Measurement, interleaved_medians, seconds_of
from leakscope.core.results.rows import ResultTable
from leakscope.core.studies.inversion import representations as encoders
from leakscope.core.studies.runner import run_cells

REPEATS = 5
STUDY = encoders.EncoderStudy(
    target="lee",
    other="lee",
    encoders=("tfidf", "hashing"),
    attacks=("probe", "retrieval"),
    domains=("in",),
    sizes=(1000, 2000),
    n_targets=200,
)


def measure() -> list[Measurement]:
    """Compare the runner with bare measurements, and time a finished study's rerun."""
    cells = STUDY.cells()

    def bare(_: int) -> None:
        """Measure all cells directly, without the runner, as the baseline."""
        with tempfile.TemporaryDirectory() as folder:
            for cell in cells:
                encoders.measure(cell, Path(folder))

    def by_the_runner(_: int) -> None:
        """Measure all cells by the study runner."""
        with tempfile.TemporaryDirectory() as folder:
            rows = run_cells(cells, encoders.measure, Path(folder))
            assert not ResultTable(rows).failed

    seconds = interleaved_medians({"bare": bare, "runner": by_the_runner}, repeats=REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        run_cells(cells, encoders.measure, Path(folder))
        resumed = seconds_of(lambda: run_cells(cells, encoders.measure, Path(folder)))
    return [
        Measurement(
            name=f"the runner over the bare work, {len(cells)} cells",
            value=100 * (seconds["runner"] / seconds["bare"] - 1),
            unit="% more",
            at_most=5,
            n=REPEATS,
            note=f"{seconds['runner']:.2f} s against {seconds['bare']:.2f} s",
        ),
        Measurement(
            name="a finished study, run again",
            value=1000 * resumed,
            unit="ms",
            note=f"{len(cells)} cells are read, none is measured",
        ),
    ]
