"""Run the cells of a study: each measured once, stored, in parallel, failures isolated.

A cell is what one measurement depends on, as JSON-able data; its result lies in a file that is
named by the cell's content. A study that was stopped or killed goes on where it was. Cells run in
processes of this machine, or where `leakscope.core.studies.cluster` says.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from leakscope.core.errors import ArtifactError, InvalidInputError, StoppedError
from leakscope.core.protocols import OnProgress, no_progress
from leakscope.core.results.provenance import Provenance, Stopwatch
from leakscope.core.results.rows import Cell, Row
from leakscope.core.storage.artifacts import check_writable, read_sealed, write_sealed

_REMEDY = (
    "Move it away and run the same command: this cell alone is measured again, all others are kept."
)


def write_cell(path: Path, cell: Cell, outcome: _Outcome) -> None:
    """Write a measured cell with its rows, duration and provenance to a sealed file."""
    stored = {"cell": cell, "provenance": outcome.provenance, "seconds": outcome.seconds}
    write_sealed(path, {**stored, "rows": list(outcome.rows)})


def read_cell(path: Path, cell: Cell) -> list[Row]:
    """Read the rows of a measured cell from its sealed file; raise ArtifactError if damaged.

    Raises
    ------
    ArtifactError
        Damaged, altered, or of another cell; the message names the file and the remedy.
    """
    stored = read_sealed(path, _REMEDY)
    try:
        if cell_key(stored["cell"]) != cell_key(cell):
            raise ArtifactError(f"{path} holds another cell than its name says. {_REMEDY}")
        found = Provenance.from_dict(stored["provenance"])
        seconds = float(stored["seconds"])
        rows = [Row.from_dict(row) for row in stored["rows"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{path} does not hold the rows of a cell ({type(error).__name__}: {error}). {_REMEDY}"
        ) from error
    return [replace(row, cell=cell, seconds=seconds, provenance=found) for row in rows]


_T = TypeVar("_T")
_U = TypeVar("_U")

Measure = Callable[[Cell, Path], Sequence[Row]]
"""Measures a cell, with a folder for what several cells share; a function of a module."""

LOST = None
"""What a backend returns instead of an outcome if a cell's process died at every try."""

_LOOK_EVERY = 0.5
"""Seconds between a worker's checks that its parent process is alive."""

_BACKEND: ContextVar[Any] = ContextVar("backend", default=None)


@dataclass(frozen=True)
class _Outcome:
    """The result of a cell, as the measuring process sends it to the writing one."""

    key: str
    seconds: float = 0.0
    rows: tuple[dict[str, Any], ...] = ()
    error: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)


@contextmanager
def use_backend(backend: Any) -> Iterator[None]:
    """Run the cells of `run_cells` on another joblib backend inside the block."""
    token = _BACKEND.set(backend)
    try:
        yield
    finally:
        _BACKEND.reset(token)


def cell_key(cell: Cell) -> str:
    """Return the hash of a cell that names its result file.

    Examples
    --------
    >>> cell_key({"a": 1, "b": 2}) == cell_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(cell, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def run_cells(
    cells: Sequence[Cell],
    measure: Measure,
    folder: Path,
    *,
    n_jobs: int = 1,
    n_tries: int = 2,
    on_progress: OnProgress = no_progress,
) -> list[Row]:
    """Measure the cells without a stored result, and return the rows of all, in order.

    Parameters
    ----------
    measure : callable
        Called once per cell without a result, up to `n_tries` times if it fails or its process
    dies. folder : Path
        Holds the results, which only this process writes, and what cells share. On other machines
        the latter is at the same path, on each machine's disk.
    n_jobs : int
        The number of parallel processes; each uses its share of the processors.

    Returns
    -------
    list of Row
        Each with its cell, its seconds and where it comes from. A cell that failed each time has
        one row with `error`; it is tried again at the next run.

    Raises
    ------
    InvalidInputError
        n_jobs or n_tries below 1, or two cells are the same.
    ArtifactError
        A finished cell is damaged; raised before any is measured.
    StorageError
        Results cannot be stored; raised before any cell is measured.
    StoppedError
        `on_progress` asked to stop; finished cells are kept.
    """
    if n_jobs < 1 or n_tries < 1:
        raise InvalidInputError("n_jobs and n_tries must be at least 1.")
    keys = [cell_key(cell) for cell in cells]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("Two cells of the study are the same.")
    results = folder / "cells"
    by_key = dict(zip(keys, cells, strict=True))
    found = _read_finished(by_key, results)
    open_cells = [cell for key, cell in by_key.items() if key not in found]
    if open_cells:
        check_writable(results)
    # Closed if left early, or workers would continue with results that are no longer needed.
    with closing(_measure_all(open_cells, measure, folder, n_jobs, n_tries)) as outcomes:
        for outcome in outcomes:
            cell = by_key[outcome.key]
            path = _result_path(results, outcome.key)
            if outcome.error:
                found[outcome.key] = [Row(cell, error=outcome.error)]
            else:
                write_cell(path, cell, outcome)
                found[outcome.key] = read_cell(path, cell)
            on_progress(len(found) / len(cells), f"{len(found)} of {len(cells)} cells are measured")
    rows = [row for key in keys for row in found[key]]
    n_failed = sum(bool(row.error) for row in rows)
    on_progress(1.0, "Every cell was measured" + (f", {n_failed} failed" if n_failed else ""))
    return rows


def _read_finished(cells: Mapping[str, Cell], results: Path) -> dict[str, list[Row]]:
    """Read the rows of finished cells; raise ArtifactError that names all damaged ones."""
    found: dict[str, list[Row]] = {}
    damaged: dict[str, ArtifactError] = {}
    for key, cell in cells.items():
        path = _result_path(results, key)
        if path.exists():
            try:
                found[key] = read_cell(path, cell)
            except ArtifactError as error:
                damaged[path.name] = error
    if damaged:
        (_, first), *others = damaged.items()
        also = f" So with {', '.join(name for name, _ in others)}." if others else ""
        raise ArtifactError(f"{first}{also}") from first
    return found


def _measure_all(
    cells: Sequence[Cell], measure: Measure, folder: Path, n_jobs: int, n_tries: int
) -> Generator[_Outcome]:
    """Measure cells, in one or several processes, and yield each outcome as it completes."""
    work = partial(_measure, measure=measure, folder=folder, n_tries=n_tries)
    if _BACKEND.get() is None and (n_jobs == 1 or len(cells) < 2):
        yield from map(work, cells)
        return
    waiting = {cell_key(cell): cell for cell in cells}
    while waiting:
        try:
            for outcome in run_parallel(list(waiting.values()), work, n_jobs):
                if outcome is not LOST:
                    del waiting[outcome.key]
                    yield outcome
        except BrokenProcessPool:
            # Cells start in order, n_jobs at a time: one of the first likely killed its process. If
            # not, the next round breaks as well and comes closer to it.
            for key in list(waiting)[:n_jobs]:
                yield _measure_isolated(waiting.pop(key), work, n_tries)
            continue
        for key in waiting:
            yield _death_outcome(key, n_tries)
        return


def run_parallel(items: Sequence[_T], work: Callable[[_T], _U], n_jobs: int) -> Iterator[_U | None]:
    """Apply `work` to items on the current joblib backend; yield results as they complete.

    LOST replaces the result of an item whose process died on a cluster.

    Raises
    ------
    BrokenProcessPool
        A process of this machine died.
    """
    from joblib import Parallel, delayed, parallel_config

    backend = _BACKEND.get()
    config: dict[str, Any] = {}
    if backend is None:
        backend = "loky"
        config = {
            "inner_max_num_threads": max(1, (os.cpu_count() or 1) // n_jobs),
            "initializer": _exit_with_parent,
            "initargs": (os.getpid(),),
        }
    with parallel_config(backend=backend, **config):
        outcomes = Parallel(
            n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs"
        )(delayed(work)(item) for item in items)
    yield from outcomes


def _exit_with_parent(parent: int) -> None:
    """Start a thread that ends this worker when its parent process ends."""

    def watch() -> None:
        """Exit once the parent process has changed."""
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def _measure_isolated(cell: Cell, work: Callable[[Cell], _Outcome], n_tries: int) -> _Outcome:
    """Measure a cell in a process while no other runs, so that its death is the cell's own."""
    for _ in range(n_tries):
        try:
            outcomes = list(run_parallel([cell], work, 2))
        except BrokenProcessPool:
            continue
        if outcomes[0] is not LOST:
            return outcomes[0]
    return _death_outcome(cell_key(cell), n_tries)


def _death_outcome(key: str, n_tries: int) -> _Outcome:
    """Build the outcome, an error, of a cell whose process died at every try."""
    told = f"its process died {n_tries} times: killed, or out of memory. Try fewer at once."
    return _Outcome(key, error=told)


def _measure(cell: Cell, measure: Measure, folder: Path, n_tries: int) -> _Outcome:
    """Measure a cell up to n_tries times; return an outcome: its rows, or its last error."""
    key, error = cell_key(cell), ""
    for _ in range(n_tries):
        watch, start = Stopwatch(), time.perf_counter()
        try:
            # Values that are no JSON fail here, as an error of this cell.
            rows = json.loads(json.dumps([row.to_dict() for row in measure(cell, folder)]))
        except StoppedError:
            raise
        except Exception as fault:  # one bad cell must not lose the rest
            error = f"{type(fault).__name__}: {fault}"
            continue
        seconds, found = round(time.perf_counter() - start, 3), watch.provenance()
        return _Outcome(key, seconds, tuple(rows), provenance=found.to_dict())
    return _Outcome(key, error=error)


def _result_path(results: Path, key: str) -> Path:
    """Return the path of a cell's result file."""
    return results / f"{key}.json"
