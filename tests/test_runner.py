"""The runner of studies: nothing finished is done again, and one bad cell loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import is_running, running_process, wait_until

from leakscope.core.errors import InvalidInputError, StoppedError
from leakscope.core.results.rows import Cell, ResultTable, Row
from leakscope.core.storage.artifacts import read_json
from leakscope.core.studies.runner import cell_key, run_cells

ROOT = Path(__file__).parents[1]


def squared(cell: Cell, folder: Path) -> list[Row]:
    """Measure a cell and leave a trace of each time that it ran."""
    with (folder / "trace.txt").open("a") as file:
        file.write(f"{cell['x']}\n")
    if cell.get("is_bad"):
        raise ValueError(f"cannot measure {cell['x']}")
    return [Row(facts={"y": cell["x"] ** 2})]


def flaky(cell: Cell, folder: Path) -> list[Row]:
    """Fail the first time."""
    mark = folder / f"tried-{cell['x']}"
    if not mark.exists():
        mark.touch()
        raise OSError("not yet")
    return [Row(facts={"y": 1})]


def deadly(cell: Cell, folder: Path) -> list[Row]:
    """Take the process down, always or the first time; or fail."""
    mark = folder / f"died-{cell['x']}"
    if cell.get("dies") == "always" or (cell.get("dies") == "once" and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.2)
    return squared(cell, folder)


def no_json(cell: Cell, folder: Path) -> list[Row]:
    return [Row(facts={"y": {1, 2}})] if cell["x"] == 2 else [Row(facts={"y": 1})]


def trace(folder: Path) -> list[str]:
    return (folder / "trace.txt").read_text().split()


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_come_in_the_order_of_the_cells_and_once(tmp_path: Path, n_jobs: int) -> None:
    cells = [{"x": x} for x in range(5)]
    rows = run_cells(cells, squared, tmp_path, n_jobs=n_jobs)
    assert [(row["x"], row["y"]) for row in rows] == [(x, x * x) for x in range(5)]
    assert all(row["cell_seconds"] >= 0 for row in rows)
    again = run_cells([*cells, {"x": 9}], squared, tmp_path, n_jobs=n_jobs)
    assert again[:5] == rows and again[5]["y"] == 81
    assert sorted(trace(tmp_path)) == ["0", "1", "2", "3", "4", "9"], "nothing is done twice"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bad_cell_loses_nothing_and_is_tried_again(tmp_path: Path, n_jobs: int) -> None:
    cells = [{"x": 1}, {"x": 2, "is_bad": True}, {"x": 3}]
    rows = run_cells(cells, squared, tmp_path, n_jobs=n_jobs, n_tries=2)
    assert [row.get("y") for row in rows] == [1, None, 9]
    assert "cannot measure 2" in ResultTable(rows).failed[0]["error"]
    assert trace(tmp_path).count("2") == 2
    run_cells(cells, squared, tmp_path, n_tries=1)
    assert trace(tmp_path).count("2") == 3 and trace(tmp_path).count("1") == 1


def test_a_failure_that_passes_is_retried(tmp_path: Path) -> None:
    assert not ResultTable(run_cells([{"x": 1}], flaky, tmp_path, n_tries=2)).failed


@pytest.mark.slow
def test_a_cell_that_kills_its_process_loses_nothing_else(tmp_path: Path) -> None:
    cells = [{"x": x} for x in range(8)]
    cells[1]["dies"] = "always"  # type: ignore[assignment]
    cells[4]["dies"] = "once"  # type: ignore[assignment]
    rows = run_cells(cells, deadly, tmp_path, n_jobs=2, n_tries=2)
    assert [row.get("y") for row in rows] == [0, None, 4, 9, 16, 25, 36, 49]
    assert "its process died 2 times" in rows[1]["error"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_are_no_json_are_the_fault_of_their_cell(tmp_path: Path, n_jobs: int) -> None:
    rows = run_cells([{"x": 1}, {"x": 2}, {"x": 3}], no_json, tmp_path, n_jobs=n_jobs)
    assert [row.get("y") for row in rows] == [1, None, 1]
    assert "JSON serializable" in rows[1]["error"]


def test_stopping_keeps_what_is_finished(tmp_path: Path) -> None:
    def stop(fraction: float, message: str) -> None:
        if fraction >= 0.5:
            raise StoppedError("Stopped.")

    cells = [{"x": x} for x in range(4)]
    with pytest.raises(StoppedError):
        run_cells(cells, squared, tmp_path, on_progress=stop)
    assert trace(tmp_path) == ["0", "1"]
    run_cells(cells, squared, tmp_path)
    assert trace(tmp_path) == ["0", "1", "2", "3"]


def test_mistakes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="n_jobs"):
        run_cells([{"x": 1}], squared, tmp_path, n_jobs=0)
    with pytest.raises(InvalidInputError, match="same"):
        run_cells([{"x": 1}, {"x": 1}], squared, tmp_path)
    assert cell_key({"a": 1.0}) != cell_key({"a": 2.0})


LEFT_ALONE = """
import os, sys, time
from pathlib import Path
from leakscope.core.studies.runner import run_cells

def endless(cell, folder):
    (folder / f"pid-{os.getpid()}").touch()
    while True:
        time.sleep(0.05)

run_cells([{"x": 1}, {"x": 2}, {"x": 3}], endless, Path(sys.argv[1]), n_jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_study(tmp_path: Path, how: signal.Signals) -> None:
    with running_process([sys.executable, "-c", LEFT_ALONE, tmp_path], cwd=ROOT) as study:
        wait_until(lambda: len(list(tmp_path.glob("pid-*"))) == 2, seconds=120)
        study.send_signal(how)
        study.wait(60)
        for mark in tmp_path.glob("pid-*"):
            pid = int(mark.name.removeprefix("pid-"))
            wait_until(lambda pid=pid: not is_running(pid), seconds=120)  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_study_goes_on_where_it_was(tmp_path: Path, n_jobs: int) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from leakscope.core.results.rows import Row\n"
        "from leakscope.core.studies.runner import run_cells\n"
        "def slow(cell, folder):\n"
        "    with (folder / 'trace.txt').open('a') as file: file.write(f\"{cell['x']}\\n\")\n"
        "    time.sleep(0.2)\n"
        "    return [Row(facts={'y': 1})]\n"
        "run_cells([{'x': x} for x in range(12)], slow, Path(sys.argv[1]), n_jobs=int(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(n_jobs)]
    with running_process(command, cwd=ROOT) as process:
        cells = tmp_path / "cells"
        wait_until(lambda: len(list(cells.glob("*.json"))) >= 3, process, seconds=120)
        process.kill()
    finished = [str(read_json(path)["cell"]["x"]) for path in (tmp_path / "cells").glob("*.json")]
    assert 3 <= len(finished) < 12
    subprocess.run(command, cwd=ROOT, check=True)
    ran = trace(tmp_path)
    assert all(ran.count(x) == 1 for x in finished), "nothing that was finished is done again"
    # Besides, those in flight at the kill, and one that ended but was not written yet.
    assert len(set(ran)) == 12 and len(ran) <= 12 + 2 * n_jobs
